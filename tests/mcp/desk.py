"""A desk with tools of every shape, the hands that run them, and clients of every revision that ask for them."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any
from uuid import UUID

from django.db import connection
from django.test import Client

from execution.pipeline.perform import perform
from tests.mcp.taskkit import LEGACY, MODERN, LegacyClient, ModernClient, post
from tests.protocols.toolkits import manifest

VERSIONS = [MODERN, LEGACY, "2025-06-18", "2025-03-26"]
OPEN = {"type": "object", "properties": {"value": {}}}
NONE = {"type": "object", "properties": {}, "additionalProperties": False}
SHAPE = {"type": "object", "properties": {"total": {"type": "number"}}, "required": ["total"]}
QUEUED = {"type": "http", "endpoint": "https://tools.example/", "dispatch": "queue", "timeout": "30s"}
RICH = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "type": "object",
    "$defs": {"Name": {"$anchor": "name", "type": "string", "minLength": 1}},
    "properties": {"who": {"$ref": "#/$defs/Name"}, "how": {"enum": ["mail", "phone"]}, "number": {"type": "string"}},
    "allOf": [{"required": ["who"]}, {"anyOf": [{"required": ["how"]}, {"required": ["number"]}]}],
    "if": {"properties": {"how": {"const": "phone"}}, "required": ["how"]},
    "then": {"required": ["number"]},
    "else": {"properties": {"number": False}},
    "additionalProperties": False,
}
ICON = {"src": "https://tools.example/desk.png", "mimeType": "image/png", "sizes": ["48x48"], "theme": "light"}
DESK = manifest(
    "Desk",
    "1.0.0",
    {"name": "Echo", "input": OPEN, "output": {}, "idempotency": "read"},
    {"name": "Count", "title": "Count things", "input": NONE, "output": {"type": "number"}, "icons": [ICON]},
    {"name": "Report", "input": NONE, "output": SHAPE},
    {"name": "Maybe", "input": NONE, "output": {"type": ["string", "null"]}},
    {"name": "Pieces", "input": NONE},
    {"name": "Quiet", "input": NONE, "output": None},
    {"name": "Rich", "input": RICH},
    {
        "name": "Transfer",
        "input": {
            "type": "object",
            "properties": {"amount": {"type": "number", "minimum": 1}, "account": {"type": "string"}},
            "required": ["amount", "account"],
            "additionalProperties": False,
        },
        "nonInferrable": ["account"],
    },
    {
        "name": "Route",
        "input": {
            "type": "object",
            "properties": {
                "region": {"type": "string", "x-mcp-header": "Region"},
                "shelf": {"type": "integer", "x-mcp-header": "Shelf-Number"},
                "is_far": {"type": "boolean", "x-mcp-header": "Far"},
            },
        },
    },
    {"name": "Slow", "input": OPEN, "runtime": QUEUED},
)


def client_of(version: str, key: str, capabilities: Mapping[str, Any] | None = None) -> ModernClient | LegacyClient:
    return ModernClient(key, capabilities) if version == MODERN else LegacyClient(key, capabilities, version)


def rpc(key: str, method: str, params: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """One request of the plain dialect, and its whole answer."""
    body = {"jsonrpc": "2.0", "id": 7, "method": method, "params": dict(params or {})}
    sent = {"Authorization": f"Bearer {key}"}
    answer: dict[str, Any] = Client().post("/rpc", body, content_type="application/json", headers=sent).json()
    assert (answer.pop("jsonrpc"), answer.pop("id")) == ("2.0", 7)
    return answer


def modern_call(
    key: str,
    name: str,
    arguments: Mapping[str, Any],
    meta: Mapping[str, Any] | None = None,
    headers: Mapping[str, str] | None = None,
) -> Any:
    """The bare response to a modern call, with headers of one's own."""
    prefix = "io.modelcontextprotocol/"
    known = {f"{prefix}protocolVersion": MODERN, f"{prefix}clientCapabilities": {}}
    params = {"name": name, "arguments": dict(arguments), "_meta": {**known, **(meta or {})}}
    sent = {"MCP-Protocol-Version": MODERN, "Mcp-Method": "tools/call", "Mcp-Name": name}
    return post(key, 1, "tools/call", params, sent | dict(headers or {}))


@contextmanager
def a_worker(monkeypatch: Any) -> Iterator[list[threading.Thread]]:
    """Queued calls run in a thread of their own, as a worker runs them."""
    threads: list[threading.Thread] = []

    def work(call: UUID) -> None:
        try:
            perform(call)
        finally:
            connection.close()

    def send(call: UUID, delay: float = 0.0) -> bool:
        threads.append(threading.Thread(target=work, args=(call,)))
        threads[-1].start()
        return True

    monkeypatch.setattr("execution.dispatch.send", send)
    yield threads
    for thread in threads:
        thread.join(20)
        assert not thread.is_alive()


def soon(holds: Callable[[], bool], seconds: float = 10.0) -> bool:
    """Whether something comes true in time."""
    stop = threading.Event()
    for _ in range(int(seconds / 0.02)):
        if holds():
            return True
        stop.wait(0.02)
    return holds()
