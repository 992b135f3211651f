"""An MCP server written by hand, in either era, that a test can make lie, forget, flood, ask back or change tools."""

from __future__ import annotations

import copy
import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from tests.services.toolserver import Answer, Asked, Session, ToolServer, answer, as_json, toolserver

MODERN = "2026-07-28"
META = "io.modelcontextprotocol/protocolVersion"
TOOL = {
    "name": "thing",
    "description": "Does a thing.",
    "inputSchema": {"type": "object", "properties": {"query": {"type": "string"}}},
}
PATH = "/mcp"

Act = Callable[["FakeMcp", Session, Any], None]


class FakeMcp:
    """One endpoint; `call` is what it does when a tool is called."""

    def __init__(self, server: ToolServer) -> None:
        self.server = server
        self.is_modern = False
        self.is_legacy = True
        self.version = "2025-11-25"
        self.sessions: set[str] | None = set()  # those it knows; None: it has none
        self.opened = 0
        self._lock = threading.Lock()
        self.pages: list[list[dict[str, Any]]] = [[copy.deepcopy(TOOL)]]
        self.call: Act = says(content=[{"type": "text", "text": "done"}])
        self.listed: Act | None = None
        server.answers[PATH] = self._serve

    @property
    def endpoint(self) -> str:
        return self.server.url + PATH

    def asked(self, method: str) -> list[Asked]:
        return [asked for asked in self.server.asked if asked.json.get("method") == method]

    def _serve(self, session: Session) -> None:
        asked = session.asked.json
        is_modern = META in asked.get("params", {}).get("_meta", {})
        if is_modern and not self.is_modern:
            refuse(-32600, "No session", 400)(self, session, asked)
        elif not is_modern and not self.is_legacy:
            refuse(-32602, "No _meta", 400)(self, session, asked)
        elif asked.get("method") == "initialize":
            self._greet(session, asked)
        elif not is_modern and self._is_stranger(session.asked):
            refuse(-32600, "Session not found", 404)(self, session, asked)
        elif "id" not in asked or "method" not in asked:
            answer(b"", 202)(session)
        elif asked["method"] == "tools/list":
            (self.listed or FakeMcp._list)(self, session, asked)
        else:
            self.call(self, session, asked)

    def _is_stranger(self, asked: Asked) -> bool:
        return self.sessions is not None and asked.headers["Mcp-Session-Id"] not in self.sessions

    def _greet(self, session: Session, asked: Any) -> None:
        headers: dict[str, str] = {}
        with self._lock:  # two who come at once must not get each other's
            self.opened += 1
            id = f"session-{self.opened}"
        if self.sessions is not None:
            headers["Mcp_Session_Id"] = id
            self.sessions.add(id)
        result = {"protocolVersion": self.version, "capabilities": {"tools": {}}, "serverInfo": {"name": "fake"}}
        as_json({"jsonrpc": "2.0", "id": asked["id"], "result": result}, 200, **headers)(session)

    def _list(self, session: Session, asked: Any) -> None:
        at = int(asked["params"].get("cursor", 0))
        result: dict[str, Any] = {"tools": self.pages[at]}
        if at + 1 < len(self.pages):
            result["nextCursor"] = str(at + 1)
        self.respond(session, asked, result)

    def respond(self, session: Session, asked: Any, result: dict[str, Any]) -> None:
        if self.is_modern and META in asked["params"].get("_meta", {}):
            result = {"resultType": "complete", **result}
        as_json({"jsonrpc": "2.0", "id": asked["id"], "result": result})(session)


def says(**result: Any) -> Act:
    """This result."""
    return lambda server, session, asked: server.respond(session, asked, result)


def refuse(code: int, message: str, status: int = 200) -> Act:
    """A JSON-RPC error."""

    def act(server: FakeMcp, session: Session, asked: Any) -> None:
        error = {"code": code, "message": message}
        as_json({"jsonrpc": "2.0", "id": asked.get("id"), "error": error}, status)(session)

    return act


def plainly(response: Answer) -> Act:
    """These bytes, whatever was asked."""
    return lambda server, session, asked: response(session)


def streams(*messages: Any, end: str = "\n\n", is_open: bool = False) -> Act:
    """Events, one after the other; an `id` of "?" is that of the request. Left open, the stream never ends."""

    def act(server: FakeMcp, session: Session, asked: Any) -> None:
        session.say(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n")
        for message in messages:
            if isinstance(message, dict):
                known = {"?": asked["id"], "!": asked["params"].get("_meta", {}).get("progressToken")}
                text = json.dumps({"jsonrpc": "2.0", **message})
                for mark, value in known.items():
                    text = text.replace(f'"{mark}"', json.dumps(value))
                message = f"event: message{end[0]}data: {text}{end}"
            session.say(message.encode())
        if is_open:
            session.wait(20.0)

    return act


@contextmanager
def fake_mcp() -> Iterator[FakeMcp]:
    with toolserver() as server:
        yield FakeMcp(server)
