"""Relay: each line of a client becomes a request to Placet, and each message of Placet a line to the client."""

from __future__ import annotations

import contextlib
import json
import sys
import threading
import time
from collections.abc import Callable, Mapping
from typing import Any, BinaryIO

from placet.bridge.address import Address, Key
from placet.bridge.headers import BASE, Mirrored, modern, modern_version
from placet.bridge.session import Lost, Session
from placet.bridge.stream import Listener
from placet.bridge.wire import PATIENCE, Exchange, Unreachable, one_line

MAX_LINE = 8_000_000
MAX_AT_ONCE = 128
GRACE = 1.0  # seconds for answers that are on their way when the client closes its end, and for our goodbye
SHORT = 30.0  # seconds for what is answered at once; nothing else of the client is read meanwhile
PARSE, INVALID, INTERNAL, MISMATCH = -32700, -32600, -32603, -32020
PAGES = 50  # of a tool list that we read ourselves
Message = Mapping[str, Any]


class Relay:
    """One client at our standard streams, and one Placet."""

    def __init__(
        self, address: Address, key: Key, *, source: BinaryIO, sink: BinaryIO, log: Callable[[str], None]
    ) -> None:
        self._address, self._key, self._source, self._sink, self._log = address, key, source, sink, log
        self._session = Session(self._post, log)
        self._mirrored = Mirrored()
        self._listener = Listener(self._session, self._exchange, self.write, log)
        self._under_way: dict[tuple[str, Any], _Request] = {}
        self._lock = threading.Lock()
        self._writing = threading.Lock()

    def run(self) -> None:
        """Until the client closes its end; what is on its way then has a moment to arrive."""
        try:
            while line := self._source.readline(MAX_LINE + 1):
                if len(line) > MAX_LINE:
                    while line and not line.endswith(b"\n"):
                        line = self._source.readline(MAX_LINE)
                    self._fail(None, INVALID, f"A message must be shorter than {MAX_LINE} bytes")
                elif line.strip():
                    self._take(line.strip())
            deadline = time.monotonic() + GRACE
            for request in self._requests():
                request.thread.join(max(0.0, deadline - time.monotonic()))
        finally:
            self._leave()

    def write(self, line: str) -> None:
        with self._writing, contextlib.suppress(BrokenPipeError, ValueError):  # nobody reads: our input ends soon
            self._sink.write(line.encode("utf-8", "surrogatepass") + b"\n")
            self._sink.flush()

    def _take(self, line: bytes) -> None:
        try:
            message = json.loads(line)
        except (ValueError, RecursionError):
            self._fail(None, PARSE, "That line is no JSON")
            return
        if not isinstance(message, dict):
            self._fail(None, INVALID, "A line must hold one JSON-RPC message")
        elif "method" in message and "id" in message:
            self._begin(_Request(message, line))
        elif message.get("method") == "notifications/cancelled" and self._abandoned(message):
            return
        else:
            self._tell(message, line)

    # Requests: one thread each

    def _begin(self, request: _Request) -> None:
        with self._lock:
            is_full = len(self._under_way) >= MAX_AT_ONCE
            if not is_full:
                self._under_way[request.key] = request
        if is_full:
            self._fail(request.id, INTERNAL, f"{MAX_AT_ONCE} requests are under way already; wait for one of them")
            return
        request.thread = threading.Thread(target=self._follow, args=[request], daemon=True)
        request.thread.start()
        if request.method == "initialize" and not request.version:
            request.thread.join(SHORT)  # whatever a client sends without waiting needs the session that this opens

    def _follow(self, request: _Request) -> None:
        """From the request to its answer, which is written exactly once, whatever happens."""
        try:
            self._ask(request)
            self._give_up(request, f"{self._address} ended its answer before it was complete")
        except Unreachable as error:
            self._give_up(request, self._unreachable(error), {"sent": error.is_sent})
        except Lost as error:
            self._give_up(request, f"{self._address}: {error}")
        finally:
            with self._lock:
                if self._under_way.get(request.key) is request:
                    del self._under_way[request.key]

    def _ask(self, request: _Request) -> None:
        session = self._session.id
        exchange = self._send(request)
        if exchange.status == 401 and self._key.has_changed():
            exchange = self._send(request)
        if exchange.status == 404 and not request.version and session and self._session.renew(session):
            exchange = self._send(request)
            self._listener.start()
        if exchange.is_stream:
            for event in exchange.events():
                if event.data:
                    self._pass_on(request, event.data)
                if request.is_over:
                    exchange.close()
            return
        text = exchange.text()
        if self._wants_headers(request, exchange.status, text) and self._learned(request):
            exchange = self._send(request)
            text = exchange.text()
        if not text.strip() or one_line(text) is None or not _is_answer(text):
            self._give_up(request, _refusal(self._address, exchange.status, text), {"status": exchange.status})
        else:
            self._pass_on(request, text)

    def _give_up(self, request: _Request, why: str, data: Message | None = None) -> None:
        if not request.is_over:  # else it was answered, or nobody wants the answer any more
            request.is_over = True
            self._fail(request.id, INTERNAL, why, data)

    def _send(self, request: _Request) -> Exchange:
        if request.version:
            headers = modern(request.message, request.version)
            if request.method == "tools/call":
                headers |= self._mirrored.headers(request.message["params"])
        else:
            headers = {} if request.method == "initialize" else self._session.headers()
        exchange = request.exchange = self._exchange()
        if request.is_over:  # cancelled before it was sent
            raise Unreachable("it was cancelled", is_sent=False)
        exchange.send("POST", BASE | headers, request.line)
        return exchange

    def _pass_on(self, request: _Request, text: str) -> None:
        line = one_line(text)
        if line is None:
            self._log("a message of the server is no JSON and was dropped")
            return
        message = json.loads(line)
        if not isinstance(message, dict):
            self._log("a message of the server is no object and was dropped")
        elif "method" in message:
            self.write(line)
        elif not request.is_over:
            request.is_over = True
            if message.get("id") != request.id:  # it could not tell which one it was asked
                line = json.dumps({**message, "id": request.id}, separators=(",", ":"))
            self._note(request, message)
            self.write(line)

    def _note(self, request: _Request, message: Message) -> None:
        """What an answer teaches the bridge; before the client sees it, and can go on."""
        if request.method == "initialize" and not request.version and request.exchange is not None:
            self._session.opened(request.message, message.get("result"), request.exchange.header("MCP-Session-Id"))
        elif request.method == "tools/list":
            self._mirrored.learn(message.get("result"))

    def _wants_headers(self, request: _Request, status: int, text: str) -> bool:
        if status != 400 or request.method != "tools/call" or not request.version:
            return False
        error = json.loads(text).get("error") if _is_answer(text) else None
        return isinstance(error, dict) and error.get("code") == MISMATCH

    def _learned(self, request: _Request) -> bool:
        """Read the tools ourselves, for a client that never asked for them; whether its tool wants headers."""
        meta, cursor = request.message["params"]["_meta"], None
        for page in range(PAGES):
            params = {"_meta": meta} | ({"cursor": cursor} if cursor is not None else {})
            asked = {"jsonrpc": "2.0", "id": f"placet-mcp-tools-{page}", "method": "tools/list", "params": params}
            status, exchange = self._post(json.dumps(asked).encode(), modern(asked, request.version))
            text = exchange.text()
            result = json.loads(text).get("result") if status == 200 and _is_answer(text) else None
            self._mirrored.learn(result)
            cursor = result.get("nextCursor") if isinstance(result, dict) else None
            if cursor is None:
                break
        return bool(self._mirrored.headers(request.message["params"]))

    # Everything else: in order, in the thread that reads

    def _tell(self, message: Message, line: bytes) -> None:
        """A notification, or the client's answer to a request of the server."""
        version = modern_version(message)
        headers = modern(message, version) if version else self._session.headers()
        try:
            session = self._session.id
            status, exchange = self._post(line, headers)
            if status == 404 and not version and session and self._session.renew(session):
                status, exchange = self._post(line, self._session.headers())
            exchange.close()
        except (Unreachable, Lost) as error:
            self._log(f"{message.get('method', 'an answer')} could not be delivered: {error}")
            return
        if status >= 400:
            self._log(f"{message.get('method', 'an answer')} was refused with {status}")
        elif message.get("method") == "notifications/initialized" and self._session.is_open:
            self._listener.start()

    def _abandoned(self, message: Message) -> bool:
        """On the modern wire the end of the stream is the cancellation; whether it was this."""
        params = message.get("params")
        cancelled = params.get("requestId") if isinstance(params, dict) else None
        with self._lock:
            request = self._under_way.get((type(cancelled).__name__, cancelled if _is_id(cancelled) else None))
            if request is None:
                return False
            request.is_over = True
        if request.version and request.exchange is not None:
            request.exchange.close()
        return bool(request.version)

    def _leave(self) -> None:
        self._listener.stop()
        for request in self._requests():
            request.is_over = True
            if request.exchange is not None:
                request.exchange.close()
        if self._session.id:
            with contextlib.suppress(Unreachable):  # then the server ends it by itself
                self._exchange(GRACE).send("DELETE", self._session.headers())

    def _post(self, body: bytes, headers: Mapping[str, str]) -> tuple[int, Exchange]:
        exchange = self._exchange(SHORT)
        return exchange.send("POST", BASE | dict(headers), body), exchange

    def _exchange(self, patience: float = PATIENCE) -> Exchange:
        return Exchange(self._address, self._key, patience=patience)

    def _requests(self) -> list[_Request]:
        with self._lock:
            return list(self._under_way.values())

    def _unreachable(self, error: Unreachable) -> str:
        if error.is_sent:
            return f"The connection to {self._address} was lost ({error}); the request may have been carried out"
        return f"{self._address} cannot be reached: {error}"

    def _fail(self, id: Any, code: int, message: str, data: Message | None = None) -> None:
        self._log(message)
        error = {"code": code, "message": message} | ({"data": dict(data)} if data else {})
        self.write(json.dumps({"jsonrpc": "2.0", "id": id, "error": error}, separators=(",", ":")))


class _Request:
    """One request of the client, until its answer is written or nobody wants it."""

    def __init__(self, message: Message, line: bytes) -> None:
        self.message, self.line = message, line
        self.id = message["id"]
        self.method = message["method"]
        self.version = modern_version(message)
        self.key = (type(self.id).__name__, self.id if _is_id(self.id) else None)
        self.exchange: Exchange | None = None
        self.thread = threading.current_thread()
        self.is_over = False


def _is_id(value: object) -> bool:
    return isinstance(value, str | int)


def _is_answer(text: str) -> bool:
    try:
        read = json.loads(text)
    except (ValueError, RecursionError):
        return False
    return isinstance(read, dict) and ("result" in read or isinstance(read.get("error"), dict))


def _refusal(address: Address, status: int, text: str) -> str:
    """What a status says to somebody who set the bridge up."""
    match status:
        case 401:
            return f"{address} does not know the key in --key-file (401)"
        case 403:
            return f"{address} refuses this key or this caller (403)"
        case 404 | 405:
            return f"There is no MCP at {address} ({status})"
        case 301 | 302 | 307 | 308:
            return f"{address} sends its callers elsewhere ({status}); give --url the address itself"
        case 503:
            return f"{address} is unavailable just now (503)"
    return f"{address} answered {status} and no JSON-RPC message: {text[:200]!r}"


def log_to_stderr(text: str) -> None:
    """A line of ours; standard output belongs to the protocol."""
    sys.stderr.write(f"placet mcp: {text}\n")
    sys.stderr.flush()
