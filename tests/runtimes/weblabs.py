"""The toolkit Lab for the runtimes that speak HTTP: the same five tools behind a real server."""

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any

from django.test import override_settings

from tests.runtimes.sandboxlabs import tool, toolkit
from tests.services.mcpserver import Act, FakeMcp, fake_mcp, plainly, says
from tests.services.toolserver import Answer, Session, as_json, hang, raw, toolserver

FAILURE = {
    "code": "execution_failed",
    "reason": "tool_backend_failure",
    "retryable": True,
    "message": "No such thing",
    "details": {"retry_after_ms": 5},
}
NAMES = ("Echo", "Fail", "Hang", "Die", "Flood")


@contextmanager
def http(folder: Path) -> Iterator[None]:
    def echo(session: Session) -> None:
        as_json(session.asked.json["value"])(session)

    with _lab(folder, "http", {"/Echo": echo, "/Flood": as_json("x" * 100_000)}):
        yield


@contextmanager
def external(folder: Path, kind: str = "external") -> Iterator[None]:
    def echo(session: Session) -> None:
        asked = session.asked.json
        as_json({"request_id": asked["request_id"], **_ok(asked["input"]["value"])})(session)

    with _lab(folder, kind, {"/Echo": echo, "/Flood": as_json(_ok("x" * 100_000))}):
        yield


def webhook(folder: Path) -> AbstractContextManager[None]:
    """A tool that may answer later and answers at once; what it does later is told in tests/execution."""
    return external(folder, "webhook-callback")


@contextmanager
def mcp(folder: Path) -> Iterator[None]:
    """The five tools of one MCP server; a text is a value where the tool declares one."""
    failure = {"content": [{"type": "text", "text": "No such thing"}], "isError": True}
    acts: dict[str, Act] = {
        "Fail": says(**failure, _meta={"dev.placet/retryAfterMs": 5}),
        "Hang": plainly(hang()),
        "Die": plainly(raw()),
        "Flood": says(content=[{"type": "text", "text": "x" * 100_000}]),
    }

    def call(server: FakeMcp, session: Session, asked: Any) -> None:
        params = asked["params"]
        echo = says(content=[{"type": "text", "text": params["arguments"].get("value")}])
        acts.get(params["name"], echo)(server, session, asked)

    with fake_mcp() as server, override_settings(PLACET_EGRESS_ALLOW=["127.0.0.0/8"]):
        server.call = call
        server.pages = [[{"name": name, "inputSchema": {"type": "object"}} for name in NAMES]]
        tools = [tool(name, type="mcp", endpoint=server.endpoint, tool=name) for name in NAMES]
        toolkit(folder, *({**each, "output": {"type": "string"}} for each in tools))
        yield


def _ok(value: Any) -> dict[str, Any]:
    return {"status": "ok", "output": {"result": value}}


@contextmanager
def _lab(folder: Path, kind: str, answers: dict[str, Answer]) -> Iterator[None]:
    shared = {"/Fail": as_json({"status": "error", "error": FAILURE}), "/Hang": hang(), "/Die": raw()}
    with toolserver(answers | shared) as server, override_settings(PLACET_EGRESS_ALLOW=["127.0.0.0/8"]):
        toolkit(folder, *(tool(name, type=kind, endpoint=f"{server.url}/{name}") for name in NAMES))
        yield
