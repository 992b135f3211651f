"""A web server on loopback that answers as a test tells it to: rightly, wrongly, slowly, too much or not at all."""

from __future__ import annotations

import contextlib
import json
import socket
import socketserver
import ssl
import struct
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from email.message import Message
from http.client import parse_headers
from typing import Any

PATIENCE = 20.0  # seconds after which a hanging answer ends by itself


@dataclass(frozen=True, slots=True)
class Asked:
    """One request as it arrived."""

    method: str
    path: str
    headers: Message
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)


Answer = Callable[["Session"], None]


class ToolServer(socketserver.ThreadingTCPServer):
    """`answers` are found by path; each gets the connection after the request was read and kept in `asked`."""

    daemon_threads = True
    block_on_close = False
    allow_reuse_address = True

    def __init__(self, context: ssl.SSLContext | None = None) -> None:
        super().__init__(("127.0.0.1", 0), Session)
        self.context = context
        self.answers: dict[str, Answer] = {}
        self.asked: list[Asked] = []
        self.connections = 0
        self.is_over = threading.Event()

    @property
    def port(self) -> int:
        return int(self.server_address[1])

    @property
    def url(self) -> str:
        return f"{'https' if self.context else 'http'}://127.0.0.1:{self.port}"

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that leaves early is what many tests are about."""


class Session(socketserver.StreamRequestHandler):
    """One connection."""

    server: ToolServer
    asked: Asked

    def handle(self) -> None:
        self.server.connections += 1
        self.connection.settimeout(PATIENCE)
        if self.server.context is not None:
            self.connection = self.server.context.wrap_socket(self.connection, server_side=True)
            self.rfile = self.connection.makefile("rb")
        method, path, _ = self.rfile.readline().decode("latin-1").split(" ")
        headers = parse_headers(self.rfile)
        body = self.rfile.read(int(headers.get("Content-Length") or 0))
        self.asked = Asked(method, path, headers, body)
        self.server.asked.append(self.asked)
        with contextlib.suppress(OSError):
            self.server.answers[path.partition("?")[0]](self)

    def finish(self) -> None:
        with contextlib.suppress(OSError):
            super().finish()
            self.connection.close()  # under TLS it is not the one that the server closes

    def say(self, *parts: bytes) -> None:
        for part in parts:
            self.connection.sendall(part)

    def wait(self, seconds: float) -> None:
        self.server.is_over.wait(seconds)


def answer(body: bytes | str = b"", status: int = 200, kind: str = "text/plain", **headers: str) -> Answer:
    """A proper answer; a header's name is written with underscores."""
    content = body.encode() if isinstance(body, str) else body
    named = {"Content-Type": kind, "Content-Length": str(len(content))}
    named |= {name.replace("_", "-"): value for name, value in headers.items()}
    head = "".join(f"{name}: {value}\r\n" for name, value in named.items())
    return raw(f"HTTP/1.1 {status} Whatever\r\n{head}\r\n".encode() + content)


def as_json(value: Any, status: int = 200, **headers: str) -> Answer:
    return answer(json.dumps(value), status, "application/json", **headers)


def raw(*parts: bytes, every: float = 0.0) -> Answer:
    """These bytes and the end of the connection."""

    def act(session: Session) -> None:
        for part in parts:
            session.say(part)
            if every:
                session.wait(every)

    return act


def reset(*parts: bytes) -> Answer:
    """These bytes, then the connection is torn down."""

    def act(session: Session) -> None:
        session.say(*parts)
        time.sleep(0.02)  # what was said must be on its way before everything is thrown away
        session.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        session.connection.close()

    return act


def hang(*parts: bytes) -> Answer:
    """These bytes, then nothing, and the connection stays open."""

    def act(session: Session) -> None:
        session.say(*parts)
        session.wait(PATIENCE)

    return act


def endless(head: bytes, piece: bytes, every: float = 0.0) -> Answer:
    """This piece over and over."""

    def act(session: Session) -> None:
        session.say(head)
        until = time.monotonic() + PATIENCE
        while time.monotonic() < until and not session.server.is_over.is_set():
            session.say(piece)
            if every:
                session.wait(every)

    return act


@contextmanager
def toolserver(
    answers: Mapping[str, Answer] | None = None, context: ssl.SSLContext | None = None
) -> Iterator[ToolServer]:
    """The server, listening."""
    server = ToolServer(context)
    server.answers.update(answers or {})
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    try:
        yield server
    finally:
        server.is_over.set()
        server.shutdown()
        server.server_close()
        thread.join()
