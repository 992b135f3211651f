"""A server whose every answer a test decides, and a bridge that is a process of its own before it."""

from __future__ import annotations

import json
import queue
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
KEY = "plk_0123456789_a-key-of-this-test"
INITIALIZE = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "desk", "version": "1"}}
INITIALIZED = {"jsonrpc": "2.0", "method": "notifications/initialized"}
MODERN = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientCapabilities": {},
}


@dataclass
class Seen:
    """One request as it arrived."""

    verb: str
    headers: dict[str, str]
    body: Any = None

    @property
    def method(self) -> str:
        return str((self.body or {}).get("method", ""))


@dataclass
class Says:
    """What the server answers: JSON, or events with the stream kept open until `until` is set."""

    body: Any = None
    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)
    events: list[str] | None = None
    until: threading.Event | None = None
    is_cut: bool = False


Answers = Callable[[Seen], Says]


class Stub:
    def __init__(self, answers: Answers, port: int = 0) -> None:
        self.seen: list[Seen] = []
        self.gone = threading.Event()  # a client left a stream that was kept open for it
        stub = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                length = int(self.headers.get("Content-Length") or 0)
                body = json.loads(self.rfile.read(length)) if length else None
                seen = Seen(self.command, {name.lower(): value for name, value in self.headers.items()}, body)
                stub.seen.append(seen)
                said = answers(seen)
                if said.is_cut:
                    self.connection.close()
                    self.close_connection = True
                elif said.events is not None:
                    self._stream(said)
                else:
                    self._whole(said)

            do_GET = do_DELETE = do_POST

            def _whole(self, said: Says) -> None:
                content = b"" if said.body is None else said.body if isinstance(said.body, bytes) else _json(said.body)
                self.send_response(said.status)
                given = {"Content-Type": "application/json", "Content-Length": str(len(content))} | said.headers
                for name, value in given.items():
                    self.send_header(name, value)
                self.end_headers()
                self.wfile.write(content)

            def _stream(self, said: Says) -> None:
                self.send_response(said.status)
                given = {"Content-Type": "text/event-stream", "Connection": "close"} | said.headers
                for name, value in given.items():
                    self.send_header(name, value)
                self.end_headers()
                try:
                    for event in said.events or []:
                        self.wfile.write(event.encode())
                    while said.until is not None and not said.until.wait(0.02):
                        self.wfile.write(b": still here\n\n")
                except OSError:
                    stub.gone.set()
                self.close_connection = True

            def log_message(self, *_: Any) -> None: ...

        self._server = ThreadingHTTPServer(("127.0.0.1", port), Handler)
        self._server.daemon_threads = True
        self.port = self._server.server_address[1]
        threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()

    def of(self, method: str) -> list[Seen]:
        return [seen for seen in self.seen if seen.method == method]

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()


class Desk:
    """A client's end of the bridge: lines in, lines out."""

    def __init__(self, port: int, *more: str) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-m", "placet", "mcp", "--url", f"http://127.0.0.1:{port}", *more],
            cwd=ROOT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        self._lines: queue.Queue[bytes] = queue.Queue()
        self.told = b""  # on standard error
        self._readers = [threading.Thread(target=work, daemon=True) for work in (self._read, self._overhear)]
        for reader in self._readers:
            reader.start()

    def send(self, *messages: Any) -> None:
        assert self.process.stdin is not None
        for message in messages:
            line = message if isinstance(message, bytes) else json.dumps(message).encode()
            self.process.stdin.write(line + b"\n")
        self.process.stdin.flush()

    def hear(self, seconds: float = 10) -> Any:
        return json.loads(self.hear_line(seconds))

    def hear_line(self, seconds: float = 10) -> bytes:
        return self._lines.get(timeout=seconds)

    def hears_nothing(self, seconds: float = 0.3) -> bool:
        try:
            self._lines.get(timeout=seconds)
        except queue.Empty:
            return True
        return False

    def ask(self, method: str, id: Any = 1, **params: Any) -> Any:
        self.send(request(method, id, **params))
        return self.hear()

    def close(self) -> int:
        """Close our end, as a client does that is done; the exit code."""
        assert self.process.stdin is not None
        self.process.stdin.close()
        code = self.process.wait(timeout=10)
        for reader in self._readers:
            reader.join(timeout=5)
        return code

    def end(self) -> None:
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        for reader in self._readers:
            reader.join(timeout=5)
        for pipe in (self.process.stdin, self.process.stdout, self.process.stderr):
            if pipe is not None:
                pipe.close()

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self._lines.put(line)

    def _overhear(self) -> None:
        assert self.process.stderr is not None
        for line in self.process.stderr:
            self.told += line


def request(method: str, id: Any = 1, **params: Any) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": id, "method": method, "params": params}


def result(seen: Seen, value: Any, **more: Any) -> Says:
    return Says({"jsonrpc": "2.0", "id": seen.body["id"], "result": value}, **more)


def event(message: Any, id: str = "") -> str:
    return (f"id: {id}\n" if id else "") + f"data: {json.dumps(message)}\n\n"


def _json(body: Any) -> bytes:
    return json.dumps(body).encode()


class Old:
    """A server of the older wire with sessions that can be ended, and what a test adds to it."""

    def __init__(self, **methods: Callable[[Seen], Says]) -> None:
        self.sessions: list[str] = []
        self.methods = {name.replace("_", "/"): answer for name, answer in methods.items()}
        self.stream: Callable[[Seen], Says] = lambda seen: Says(status=405)

    def __call__(self, seen: Seen) -> Says:
        if seen.method == "initialize":
            self.sessions.append(f"session-{len(self.sessions) + 1}")
            headers = {"MCP-Session-Id": self.sessions[-1]}
            return result(seen, {"protocolVersion": "2025-11-25", "capabilities": {}}, headers=headers)
        if seen.headers.get("mcp-session-id") != self.sessions[-1]:
            return Says({"jsonrpc": "2.0", "error": {"code": -32600, "message": "no such session"}}, status=404)
        if seen.verb == "GET":
            return self.stream(seen)
        if seen.verb == "DELETE":
            return Says(status=204)
        if "id" not in seen.body or "method" not in seen.body:
            return Says(status=202)
        if seen.method in self.methods:
            return self.methods[seen.method](seen)
        return result(seen, {"of": seen.method})


def connect(desk: Desk) -> None:
    assert desk.ask("initialize", 0, **INITIALIZE)["result"]["protocolVersion"] == "2025-11-25"
    desk.send(INITIALIZED)


def until(holds: Callable[[], bool], seconds: float = 10) -> bool:
    deadline = time.monotonic() + seconds
    while not (is_true := holds()) and time.monotonic() < deadline:
        time.sleep(0.01)
    return is_true


Open = Callable[..., tuple[Desk, Stub]]
