"""The load client: many keep-alive connections in one thread, cheap enough that the server is what is measured."""

from __future__ import annotations

import select
import socket
import time
from array import array
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from itertools import cycle
from typing import Any

PATIENCE = 60.0  # seconds that an answer may take before the run is given up
MAX_ERRORS = 100
_END_OF_HEAD = b"\r\n\r\n"
_LENGTH = b"content-length:"
_LAST_CHUNK = b"\r\n0\r\n\r\n"


@dataclass(frozen=True, slots=True)
class Question:
    """One request, ready to be sent, and two things that a right answer's body holds."""

    sent: bytes
    success: bytes
    value: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class Load:
    """What one run measured. Latencies are milliseconds; `answered` counts every right answer, the warm-up's too."""

    concurrency: int
    calls: int
    seconds: float
    rate: float
    p50: float
    p95: float
    p99: float
    errors: int
    answered: int
    client_cpu: float  # the client's share of one core: well below 1, or it was the bottleneck
    first_error: str = ""

    def as_json(self) -> dict[str, Any]:
        return asdict(self)


def post(port: int, path: str, body: bytes, headers: dict[str, str] | None = None) -> bytes:
    """The bytes of a POST to this machine."""
    told = {"Host": f"127.0.0.1:{port}", "Content-Type": "application/json", "Content-Length": str(len(body))}
    lines = [f"POST {path} HTTP/1.1", *(f"{name}: {value}" for name, value in (told | (headers or {})).items())]
    return "\r\n".join([*lines, "", ""]).encode() + body


def drive(
    port: int,
    questions: Sequence[Question],
    *,
    concurrency: int,
    seconds: float,
    warm_up: float = 0.5,
    max_calls: int = 1_000_000,
) -> Load:
    """Ask the questions in turn, `concurrency` at a time, each connection again as soon as it was answered."""
    return _Run(port, questions, concurrency).measure(seconds, warm_up, max_calls)


class _Connection:
    """One open connection with at most one question under way."""

    __slots__ = ("question", "received", "sent_at", "sock")

    def __init__(self, port: int) -> None:
        self.sock = socket.create_connection(("127.0.0.1", port), timeout=PATIENCE)
        self.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.received = b""
        self.question: Question
        self.sent_at = 0

    def ask(self, question: Question) -> None:
        self.received, self.question = b"", question
        self.sent_at = time.perf_counter_ns()
        self.sock.sendall(question.sent)


class _Run:
    def __init__(self, port: int, questions: Sequence[Question], concurrency: int) -> None:
        self._port = port
        self._questions = cycle(questions)
        self._concurrency = concurrency
        self._connections: dict[int, _Connection] = {}
        self._errors = 0
        self._first_error = ""
        self._answered = 0

    def measure(self, seconds: float, warm_up: float, max_calls: int) -> Load:
        latencies = array("q")
        with select.epoll() as poll:
            try:
                for _ in range(self._concurrency):
                    self._open(poll)
                self._until(poll, time.perf_counter_ns() + int(warm_up * 1e9), array("q"), max_calls)
                began, cpu = time.perf_counter_ns(), time.process_time()
                self._until(poll, began + int(seconds * 1e9), latencies, max_calls)
                took = (time.perf_counter_ns() - began) / 1e9
                cpu = time.process_time() - cpu
                self._drain(poll)
            finally:
                for connection in self._connections.values():
                    connection.sock.close()
        ordered = sorted(latencies) or [0]
        return Load(
            concurrency=self._concurrency,
            calls=len(latencies),
            seconds=round(took, 3),
            rate=round(len(latencies) / took, 1),
            p50=_percentile(ordered, 0.50),
            p95=_percentile(ordered, 0.95),
            p99=_percentile(ordered, 0.99),
            errors=self._errors,
            answered=self._answered,
            client_cpu=round(cpu / took, 3),
            first_error=self._first_error,
        )

    def _open(self, poll: select.epoll) -> None:
        connection = _Connection(self._port)
        self._connections[connection.sock.fileno()] = connection
        poll.register(connection.sock.fileno(), select.EPOLLIN)
        connection.ask(next(self._questions))

    def _until(self, poll: select.epoll, end: int, latencies: array[int], max_calls: int) -> None:
        """Keep every connection busy until the time is up or enough was asked."""
        connections, questions = self._connections, self._questions
        while time.perf_counter_ns() < end and len(latencies) < max_calls and self._errors < MAX_ERRORS:
            for fd, _ in poll.poll(0.05, self._concurrency):
                connection = connections[fd]
                if self._has_answer(poll, connection):
                    latencies.append(time.perf_counter_ns() - connection.sent_at)
                    connection.ask(next(questions))
                elif fd not in connections:
                    self._open(poll)

    def _drain(self, poll: select.epoll) -> None:
        """What is still under way is committed too: wait for it, so that answers and rows can be compared."""
        busy, deadline = set(self._connections), time.monotonic() + PATIENCE
        while busy and time.monotonic() < deadline and self._errors < MAX_ERRORS:
            for fd, _ in poll.poll(0.05, self._concurrency):
                if self._has_answer(poll, self._connections[fd]):
                    busy.discard(fd)
            busy &= self._connections.keys()
        self._errors += len(busy)
        self._first_error = self._first_error or ("no answer" if busy else "")

    def _has_answer(self, poll: select.epoll, connection: _Connection) -> bool:
        """Whether the answer is here in full; a wrong one is counted, and its connection closed."""
        chunk = connection.sock.recv(65536)
        received = connection.received + chunk if connection.received else chunk
        if chunk and not _is_whole(received):
            connection.received = received
            return False
        question = connection.question
        if received.startswith(b"HTTP/1.1 200 ") and question.success in received and question.value in received:
            self._answered += 1
            return True
        self._errors += 1
        self._first_error = self._first_error or received[:600].decode(errors="replace") or "connection closed"
        poll.unregister(connection.sock.fileno())
        del self._connections[connection.sock.fileno()]
        connection.sock.close()
        return False


def _is_whole(received: bytes) -> bool:
    """Whether a head and its whole body, of a told length or in chunks, are here."""
    end = received.find(_END_OF_HEAD)
    if end < 0:
        return False
    head = received[:end].lower()
    start = head.find(_LENGTH)
    if start < 0:
        return received.endswith(_LAST_CHUNK)
    return len(received) >= end + 4 + int(head[start + len(_LENGTH) :].split(b"\r\n", 1)[0])


def _percentile(ordered: Sequence[int], share: float) -> float:
    return round(ordered[min(len(ordered) - 1, int(len(ordered) * share))] / 1e6, 3)
