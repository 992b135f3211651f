"""A small stand-in for the session API, which does what a test says and remembers what it was told."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

Answer = tuple[int, Any]


class SessionServer:
    """Requests that wait, and the answers that they got, by their ids."""

    def __init__(self) -> None:
        self.pending: list[dict[str, Any]] = []
        self.context: dict[str, Any] = {}
        self.others: list[str] = []  # that the session holds too, besides r-1
        self.holds = True  # whether r-1 is still the session's when it looks for it
        self.opened: list[Any] = []
        self.closed: list[str] = []
        self.beats: list[str] = []
        self.polls = 0
        self.answers: dict[str, Any] = {}
        self.troubles: list[Callable[[str, str], Answer | None]] = []  # each may answer in our place
        self.keys: set[str] = set()
        self.url = ""
        self._lock = threading.Lock()

    def offer(self, tool: str, id: str = "r-1", **arguments: Any) -> None:
        needs = {"secrets": [], "authorization": [], "userId": False}
        request = {"requestId": id, "callId": f"call-{id}", "tool": tool, "toolId": f"Shop.{tool}@1.0.0"}
        more = {"attempt": 1, "idempotencyKey": id, "timeout": 30.0, "agent": "robot", "requires": needs}
        self.pending.append(request | more | {"arguments": arguments, "traceparent": "00-" + "a" * 32 + "-b-01"})

    def answered(self, id: str = "r-1", seconds: float = 10) -> Any:
        deadline = time.monotonic() + seconds
        while id not in self.answers:
            assert time.monotonic() < deadline, "nothing was answered"
            time.sleep(0.01)
        return self.answers[id]

    def answer(self, method: str, path: str, body: Any) -> Answer:
        with self._lock:
            for trouble in list(self.troubles):
                if (answer := trouble(method, path)) is not None:
                    return answer
            return self._answer(method, path, body)

    def _answer(self, method: str, path: str, body: Any) -> Answer:
        match method, path.partition("?")[0].split("/")[2:]:
            case "POST", ["sessions"]:
                self.opened.append(body)
                return 201, {"sessionId": f"s-{len(self.opened)}", "lease": 1.0}
            case "DELETE", ["sessions", session]:
                self.closed.append(session)
                return 204, None
            case "GET", ["sessions", session, "requests"]:
                if session != f"s-{len(self.opened)}":
                    return 404, {"error": {"message": "There is no such session"}}
                if "PROCESSING" in path:
                    return 200, self._held(path)
                self.polls += 1
                return 200, {"requests": list(self.pending)}
            case "POST", ["tools", "request", _, id, "heartbeat"]:
                return self._beat(id, body)
            case "POST", ["tools", "response", _, id]:
                self.answers[id] = body["response"]
                return 200, None
        return 404, {"error": {"message": "nothing is here"}}

    def _held(self, path: str) -> dict[str, Any]:
        """One request on each page, `r-1` on the last one."""
        held = [*self.others, "r-1"] if self.holds else self.others
        number = held.index(path.partition("after=")[2]) + 1 if "after=" in path else 0
        page = [{"requestId": id, "context": self.context if id == "r-1" else {}} for id in held[number : number + 1]]
        return {"requests": page, "next": held[number] if number + 1 < len(held) else None}

    def _beat(self, id: str, body: Any) -> Answer:
        if body["state"] == "ERROR":
            self.answers[id] = body
        else:
            self.beats.append(id)
            self.pending = [each for each in self.pending if each["requestId"] != id]
        return 200, None


@contextmanager
def session_server() -> Iterator[SessionServer]:
    server = SessionServer()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        timeout = 1.0  # seconds after which a connection that nobody uses is closed, as servers do

        def _do(self) -> None:
            length = int(self.headers.get("Content-Length") or 0)
            content = self.rfile.read(length)
            server.keys.add(self.headers["Authorization"])
            status, body = server.answer(self.command, self.path, json.loads(content) if content else None)
            if status == 200 and body == {"requests": []} and "wait=20" in self.path:
                time.sleep(0.05)  # a short long poll
            told = b"" if body is None else json.dumps(body).encode()
            self.send_response(status)
            self.send_header("Content-Length", str(len(told)))
            self.end_headers()
            self.wfile.write(told)

        do_GET = do_POST = do_DELETE = _do

        def log_message(self, *_: object) -> None: ...

    class Listener(ThreadingHTTPServer):
        daemon_threads = True

        def handle_error(self, *_: object) -> None:
            """Whoever hangs up while it waits is no trouble."""

    listener = Listener(("127.0.0.1", 0), Handler)
    server.url = f"http://127.0.0.1:{listener.server_address[1]}"
    thread = threading.Thread(target=listener.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield server
    finally:
        listener.shutdown()
        thread.join(5)
        listener.server_close()
