"""On which terms a contract client asks: less time, fewer attempts, and its own names, all the way to the tool."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import pytest
from django.test import Client

from tests.protocols.wire import post
from tests.services.toolserver import ToolServer, as_json, hang, toolserver

if TYPE_CHECKING:
    from policy.agents import NewAgent

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("at_once")]

PATH = "/contract/v1/execute"
OK = as_json({"status": "ok", "output": {"result": 1}})
DOWN = as_json({"status": "error", "error": {"code": "execution_failed", "message": "Down", "retryable": True}})


@pytest.fixture
def at_once() -> Iterator[None]:
    """Queued calls run as soon as they are sent, in this process."""
    from config.celery import app

    app.conf.task_always_eager = app.conf.task_eager_propagates = True
    yield
    app.conf.task_always_eager = app.conf.task_eager_propagates = False


@pytest.fixture
def server(settings: Any) -> Iterator[ToolServer]:
    settings.PLACET_EGRESS_ALLOW = ["127.0.0.0/8"]
    with toolserver() as running:
        yield running


@pytest.fixture
def agent(server: ToolServer) -> NewAgent:
    """An external tool with three seconds and three attempts, and an agent that may call it."""
    from policy import agents
    from registry import manifests, publishing

    retry = {"maxAttempts": 3, "backoff": "0s"}
    runtime = {"type": "external", "endpoint": f"{server.url}/", "timeout": "3s", "retry": retry}
    manifest = {
        "apiVersion": "placet.dev/v1",
        "kind": "Toolkit",
        "metadata": {"name": "Web", "version": "1.0.0"},
        "spec": {"tools": [{"name": "Thing", "description": "A thing.", "idempotency": "read", "runtime": runtime}]},
    }
    publishing.publish(manifests.import_manifest(manifest, by=None).version, by=None)
    return agents.create("robot", actor="shell", call=["Web"])


def execute(client: Client, by: NewAgent, /, **more: Any) -> Any:
    return post(client, PATH, {"request_id": "req-1", "tool": {"name": "Web_Thing"}, **more}, by).json()


def test_check_35_the_callers_own_names_reach_the_tool(client: Client, server: ToolServer, agent: NewAgent) -> None:
    server.answers["/"] = OK
    told = execute(client, agent, task_id="default/weekly-report", namespace="reports", agent="someone-else")
    assert told["status"] == "ok"
    (asked,) = server.asked
    assert (asked.json["task_id"], asked.json["namespace"]) == ("default/weekly-report", "reports")
    assert asked.json["agent"] == "robot"  # who asks is who proved to, whatever the request says


@pytest.mark.parametrize(("asked", "sent"), [(500, 500), (60_000, 3000), (0, 3000), (-1, 3000), (None, 3000)])
def test_check_18_a_caller_may_ask_for_less_time_and_never_for_more(
    client: Client, server: ToolServer, agent: NewAgent, asked: int | None, sent: int
) -> None:
    server.answers["/"] = OK
    assert execute(client, agent, runtime={"timeout_ms": asked})["status"] == "ok"
    assert server.asked[0].json["runtime"]["timeout_ms"] == sent


def test_check_20_who_has_less_time_than_the_tool_is_told_of_its_own_limit_and_blames_nobody(
    client: Client, server: ToolServer, agent: NewAgent, settings: Any
) -> None:
    from execution.models import Breaker

    settings.PLACET_BREAKER_FAILURES = 1
    server.answers["/"] = hang()
    told = execute(client, agent, runtime={"timeout_ms": 100, "max_attempts": 1})
    assert (told["error"]["code"], told["error"]["details"]["timeout_ms"]) == ("timeout", 100)
    assert told["usage"]["attempt"] == 1
    assert not Breaker.objects.exists()


@pytest.mark.parametrize(("asked", "made"), [(1, 1), (2, 2), (9, 3), (0, 3), (None, 3)])
def test_check_22_a_caller_may_ask_for_fewer_attempts_and_never_for_more(
    client: Client, server: ToolServer, agent: NewAgent, asked: int | None, made: int
) -> None:
    server.answers["/"] = DOWN
    told = execute(client, agent, runtime={"max_attempts": asked})
    assert (told["status"], told["usage"]["attempt"], len(server.asked)) == ("error", made, made)
    assert [each.json["attempt"] for each in server.asked] == list(range(1, made + 1))


@pytest.mark.parametrize(
    ("given", "field"),
    [
        ({"runtime": {"timeout_ms": "100"}}, "runtime.timeout_ms"),
        ({"runtime": {"timeout_ms": True}}, "runtime.timeout_ms"),
        ({"runtime": {"timeout_ms": 0.001}}, "runtime.timeout_ms"),
        ({"runtime": {"max_attempts": []}}, "runtime.max_attempts"),
        ({"runtime": "fast"}, "runtime"),
        ({"task_id": 7}, "task_id"),
        ({"namespace": "x" * 300}, "namespace"),
    ],
)
def test_terms_that_are_none_are_invalid_and_named(
    client: Client, server: ToolServer, agent: NewAgent, given: dict[str, Any], field: str
) -> None:
    told = execute(client, agent, **given)
    assert (told["error"]["code"], told["error"]["details"]["field"]) == ("invalid_input", field)
    assert server.asked == []


def test_the_same_request_on_other_terms_is_the_same_request(
    client: Client, server: ToolServer, agent: NewAgent
) -> None:
    server.answers["/"] = OK
    first = execute(client, agent, runtime={"timeout_ms": 900})
    again = execute(client, agent, runtime={"timeout_ms": 400})
    assert (first["output"], len(server.asked)) == (again["output"], 1)
