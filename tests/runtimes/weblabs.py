"""The toolkit Lab for the runtimes that speak HTTP: the same five tools behind a real server."""

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any

from django.test import override_settings

from tests.runtimes.sandboxlabs import tool, toolkit
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


def _ok(value: Any) -> dict[str, Any]:
    return {"status": "ok", "output": {"result": value}}


@contextmanager
def _lab(folder: Path, kind: str, answers: dict[str, Answer]) -> Iterator[None]:
    shared = {"/Fail": as_json({"status": "error", "error": FAILURE}), "/Hang": hang(), "/Die": raw()}
    with toolserver(answers | shared) as server, override_settings(PLACET_EGRESS_ALLOW=["127.0.0.0/8"]):
        toolkit(folder, *(tool(name, type=kind, endpoint=f"{server.url}/{name}") for name in NAMES))
        yield
