"""One story, told at every door: the call is the same, and so is what is on record of it, but for the door's name."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import orjson
import pytest
from django.test import Client

from tests.mcp.taskkit import LegacyClient, ModernClient
from tests.protocols.toolkits import Hands, manifest
from tests.protocols.wire import OTC, OXP, bearer, post

if TYPE_CHECKING:
    from policy.agents import NewAgent

pytestmark = pytest.mark.django_db

Call = Callable[[Client, "NewAgent", str, Mapping[str, Any]], object]
QUEUED = {"type": "http", "endpoint": "https://tools.example/"}
VAULT = manifest("Vault", "1.0.0", {"name": "Open", "description": "Open it", "risk": "high", "runtime": QUEUED})


def oxp(client: Client, agent: NewAgent, tool: str, arguments: Mapping[str, Any]) -> object:
    return post(client, OXP, {"request": {"tool_id": tool, "input": arguments}}, agent)


def otc(client: Client, agent: NewAgent, tool: str, arguments: Mapping[str, Any]) -> object:
    from execution.protocols.otc.version import SCHEMA

    return post(client, OTC, {"$schema": SCHEMA, "request": {"tool_id": tool, "inputs": arguments}}, agent)


def native(client: Client, agent: NewAgent, tool: str, arguments: Mapping[str, Any]) -> object:
    return post(client, "/api/calls/", {"tool_id": tool, "input": arguments}, agent)


def contract(client: Client, agent: NewAgent, tool: str, arguments: Mapping[str, Any]) -> object:
    return post(client, "/contract/v1/execute", _envelope(tool, arguments), agent)


def grpc(client: Client, agent: NewAgent, tool: str, arguments: Mapping[str, Any]) -> object:
    from execution.grpc import door

    metadata = {name.lower(): value for name, value in bearer(agent.key).items()}
    return door.execute(orjson.dumps(_envelope(tool, arguments)), metadata)


def modern(client: Client, agent: NewAgent, tool: str, arguments: Mapping[str, Any]) -> object:
    return ModernClient(agent.key).call(tool.replace(".", "_"), arguments).result


def legacy(client: Client, agent: NewAgent, tool: str, arguments: Mapping[str, Any]) -> object:
    return LegacyClient(agent.key).call(tool.replace(".", "_"), arguments).result


def rpc(client: Client, agent: NewAgent, tool: str, arguments: Mapping[str, Any]) -> object:
    params = {"name": tool.replace(".", "_"), "arguments": arguments}
    return post(client, "/rpc", {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}, agent)


DOORS: dict[str, tuple[Call, str]] = {
    "otc": (otc, "otc"),
    "native": (native, "native"),
    "contract": (contract, "contract"),
    "grpc": (grpc, "grpc"),
    "mcp 2026-07-28": (modern, "mcp"),
    "mcp 2025-11-25": (legacy, "mcp"),
    "rpc": (rpc, "rpc"),
}
STORIES: dict[str, tuple[str, dict[str, Any], list[str]]] = {
    "it works": ("Calculator.Add", {"a": 1, "b": 2.5}, ["received", "decided", "started", "succeeded"]),
    "the tool fails": ("Doorbell.Ring", {"doorbell_id": "none"}, ["received", "decided", "started", "failed"]),
    "the input is wrong": ("Calculator.Add", {"a": "one", "b": 2}, ["received", "rejected"]),
    "a person is asked": ("Vault.Open", {}, ["received", "decided", "awaiting_approval"]),
}


@pytest.fixture
def vault(toolkits: object) -> None:
    """A toolkit that two people had to agree to."""
    from django.contrib.auth.models import User

    from registry import manifests, publishing

    author, reviewer = User.objects.get(username="author"), User.objects.create_user("reviewer")
    publishing.publish(manifests.import_manifest(VAULT, by=author).version, by=author, reviewed_by=reviewer)


@pytest.mark.usefixtures("vault")
@pytest.mark.parametrize("story", STORIES)
@pytest.mark.parametrize("door", DOORS)
def test_the_trail_differs_only_in_the_name_of_the_door(
    client: Client, robot: NewAgent, hands: Hands, door: str, story: str
) -> None:
    tool, arguments, events = STORIES[story]
    oxp(client, robot, tool, arguments)
    first = recorded("oxp")
    call, name = DOORS[door]
    call(client, robot, tool, arguments)
    second = recorded(name)
    assert [told["event"] for told in first["events"]] == [f"call.{event}" for event in events]
    assert second == first


def recorded(door: str) -> dict[str, Any]:
    """All that is kept of the one call of a door, without what is of this call alone: ids and times."""
    from audit.models import Event
    from execution.models import Attempt, Call

    call = Call.objects.get(door=door)
    events = Event.objects.filter(subject_kind="call", subject_id=str(call.pk)).order_by("seq")
    attempts = Attempt.objects.filter(call=call).order_by("number")
    kept = ("tool_ref", "state", "dispatch", "input", "result", "result_kind", "error", "decision", "arguments_digest")
    return {
        "call": {name: _same(getattr(call, name), str(call.approval_id)) for name in kept},
        "attempts": [(attempt.number, attempt.where, attempt.status, attempt.code) for attempt in attempts],
        "events": [
            {
                "event": event.event,
                "actor": event.actor,
                "outcome": event.outcome,
                "detail": _detail(event.detail, door),
            }
            for event in events
        ],
    }


def _detail(text: str, door: str) -> dict[str, Any]:
    detail: dict[str, Any] = orjson.loads(text)
    assert detail.pop("door", door) == door
    return {name: value for name, value in detail.items() if name not in ("call_id", "duration_ms", "approval")}


def _same(value: Any, approval: str) -> Any:
    return value.replace(approval, "<approval>") if isinstance(value, str) else value


def _envelope(tool: str, arguments: Mapping[str, Any]) -> dict[str, Any]:
    name = tool.replace(".", "_")
    return {"tool_contract_version": "v1", "request_id": f"one-{name}", "tool": {"name": name}, "input": arguments}
