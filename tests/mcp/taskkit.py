"""MCP clients of both eras, as small as they can be: one request, one answer, read from JSON or from a stream."""

from __future__ import annotations

import json
from collections.abc import Mapping
from itertools import count
from typing import Any

from django.test import Client

MODERN, LEGACY = "2026-07-28", "2025-11-25"
META = "io.modelcontextprotocol/"
TASKS: dict[str, Any] = {"extensions": {"io.modelcontextprotocol/tasks": {}}}
PAGES: dict[str, Any] = {"elicitation": {"form": {}, "url": {}}}
FORMS: dict[str, Any] = {"elicitation": {}}
ACCEPT = "application/json, text/event-stream"


class Answer:
    """What came back: the notifications of a stream, and the response."""

    def __init__(self, response: Any) -> None:
        self.status = response.status_code
        self.notices: list[dict[str, Any]] = []
        body = b"".join(response.streaming_content) if response.streaming else response.content
        self.headers = response.headers
        if response.headers.get("Content-Type", "").startswith("text/event-stream"):
            messages = [
                json.loads(line[5:]) for line in body.decode().splitlines() if line[5:].strip() and line[:5] == "data:"
            ]
            self.notices = [message for message in messages if "id" not in message]
            self.body: dict[str, Any] = next((message for message in messages if "id" in message), {})
        else:
            self.body = json.loads(body) if body else {}

    @property
    def result(self) -> dict[str, Any]:
        assert "result" in self.body, self.body
        return dict(self.body["result"])

    @property
    def error(self) -> dict[str, Any]:
        assert "error" in self.body, self.body
        return dict(self.body["error"])

    @property
    def code(self) -> int:
        return int(self.error["code"])

    @property
    def text(self) -> str:
        return str(self.result["content"][0]["text"])


class ModernClient:
    """Stateless: every request says what its client can do."""

    def __init__(self, key: str, capabilities: Mapping[str, Any] | None = None) -> None:
        self.key, self.capabilities, self._ids = key, dict(capabilities or {}), count(1)

    def send(self, method: str, params: Mapping[str, Any] | None = None, **capabilities: Any) -> Answer:
        params = dict(params or {})
        own = params.pop("_meta", {})
        declared = capabilities or self.capabilities
        params["_meta"] = {f"{META}protocolVersion": MODERN, f"{META}clientCapabilities": declared, **own}
        headers = {"MCP-Protocol-Version": MODERN, "Mcp-Method": method}
        named = params.get("name") if method == "tools/call" else params.get("taskId")
        if isinstance(named, str):
            headers["Mcp-Name"] = named
        return Answer(post(self.key, next(self._ids), method, params, headers))

    def call(self, name: str, arguments: Mapping[str, Any], **more: Any) -> Answer:
        return self.send("tools/call", {"name": name, "arguments": dict(arguments), **more})

    def get(self, task: str) -> dict[str, Any]:
        return self.send("tasks/get", {"taskId": task}).result


class LegacyClient:
    """With a handshake, in which it says what it can do."""

    def __init__(self, key: str, capabilities: Mapping[str, Any] | None = None, version: str = LEGACY) -> None:
        self.key, self.version, self._ids = key, version, count(1)
        self.headers: dict[str, str] = {}
        params = {
            "protocolVersion": version,
            "capabilities": dict(capabilities or {}),
            "clientInfo": {"name": "kit", "version": "1"},
        }
        answer = self.send("initialize", params)
        self.server = answer.result
        self.headers = {"MCP-Protocol-Version": version}
        if session := answer.headers.get("Mcp-Session-Id"):
            self.headers["Mcp-Session-Id"] = session
        post(key, None, "notifications/initialized", {}, self.headers)

    def send(self, method: str, params: Mapping[str, Any] | None = None) -> Answer:
        return Answer(post(self.key, next(self._ids), method, dict(params or {}), self.headers))

    def call(self, name: str, arguments: Mapping[str, Any], **more: Any) -> Answer:
        return self.send("tools/call", {"name": name, "arguments": dict(arguments), **more})

    def get(self, task: str) -> dict[str, Any]:
        return self.send("tasks/get", {"taskId": task}).result


def post(key: str, id: int | None, method: str, params: dict[str, Any], headers: Mapping[str, str]) -> Any:
    body: dict[str, Any] = {"jsonrpc": "2.0", "method": method, "params": params}
    if id is not None:
        body["id"] = id
    sent = {"Authorization": f"Bearer {key}", "Accept": ACCEPT, **headers}
    return Client().post("/mcp", body, content_type="application/json", headers=sent)
