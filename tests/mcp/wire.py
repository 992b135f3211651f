"""Requests to /mcp and /rpc as raw as a test needs them: every header and every byte can be chosen."""

from __future__ import annotations

import json
from typing import Any

from django.test import Client

from audit.models import Event
from policy.agents import NewAgent

MODERN = "2026-07-28"
LEGACY = "2025-11-25"
META = "io.modelcontextprotocol/"
BOTH = "application/json, text/event-stream"
JSON = "application/json"


def meta(version: str = MODERN) -> dict[str, Any]:
    return {f"{META}protocolVersion": version, f"{META}clientCapabilities": {}}


def message(method: str, params: Any = None, id: Any = 1) -> dict[str, Any]:
    told: dict[str, Any] = {"jsonrpc": "2.0", "method": method, "id": id}
    if params is not None:
        told["params"] = params
    return {name: value for name, value in told.items() if value is not ...}


def send(
    body: Any,
    agent: NewAgent | str | None,
    headers: dict[str, str] | None = None,
    *,
    path: str = "/mcp",
    verb: str = "POST",
    content_type: str = JSON,
) -> Any:
    """One HTTP request; a header of the value "" is not sent."""
    data = body if isinstance(body, bytes) else b"" if body is None else json.dumps(body).encode()
    key = agent.key if isinstance(agent, NewAgent) else agent
    given = {"Accept": BOTH, **({"Authorization": f"Bearer {key}"} if key else {}), **(headers or {})}
    sent = {name: value for name, value in given.items() if value}
    return Client(enforce_csrf_checks=True).generic(verb, path, data, headers=sent, content_type=content_type)


def modern(method: str, agent: NewAgent | str | None, params: dict[str, Any] | None = None, **headers: str) -> Any:
    """A request of 2026-07-28 as it should be, but for what the caller changes; "" takes a header away."""
    params = params or {}
    named = params.get("name", params.get("taskId", ""))
    given = {"MCP-Protocol-Version": MODERN, "Mcp-Method": method, "Mcp-Name": named if isinstance(named, str) else ""}
    given |= {name.replace("_", "-"): value for name, value in headers.items()}
    return send(message(method, {"_meta": meta(), **params}), agent, given)


def initialize(agent: NewAgent | str | None, version: str = LEGACY, **params: Any) -> Any:
    told = {"protocolVersion": version, "capabilities": {}, "clientInfo": {"name": "wire", "version": "1"}, **params}
    return send(message("initialize", told), agent)


def session(agent: NewAgent | str | None, version: str = LEGACY) -> dict[str, str]:
    """The headers of a new session."""
    answer = initialize(agent, version)
    assert answer.status_code == 200, answer.content
    return {"Mcp-Session-Id": answer["Mcp-Session-Id"], "MCP-Protocol-Version": version}


def code(response: Any) -> int:
    """The error of an answer that is one."""
    told = response.json()
    assert told.keys() <= {"jsonrpc", "id", "error"}
    assert (told["jsonrpc"], type(told["error"]["message"])) == ("2.0", str)
    return int(told["error"]["code"])


def result(response: Any) -> Any:
    assert response.status_code == 200, response.content
    assert response["Content-Type"] == JSON
    told = response.json()
    assert told.keys() == {"jsonrpc", "id", "result"}
    return told["result"]


def events(response: Any) -> list[Any]:
    """Every message of a stream that has ended."""
    assert response["Content-Type"] == "text/event-stream"
    lines = b"".join(response.streaming_content).decode().splitlines()
    return [json.loads(line.removeprefix("data:")) for line in lines if line.startswith("data:")]


def refusals() -> list[str]:
    """What the trail says of requests that were refused."""
    return [json.loads(event.detail)["code"] for event in Event.objects.filter(event="request.refused").order_by("id")]
