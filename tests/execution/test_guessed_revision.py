"""A call that was judged by a guess of the registry's state is as if it had been judged by the state itself."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import psycopg
import pytest
from django.db import connection
from django.test import Client
from guardian.shortcuts import assign_perm, remove_perm

from audit.models import Event
from execution.models import Call
from policy import agents
from policy.agents import NewAgent
from registry import revision
from registry.models import Toolkit, ToolkitVersion
from registry.publishing import withdraw

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def _patience(monkeypatch: pytest.MonkeyPatch) -> None:
    """A busy machine may take its time between two calls."""
    monkeypatch.setattr(revision, "FRESH", 60.0)


@pytest.fixture
def robot(lab: ToolkitVersion) -> NewAgent:
    return agents.create("robot", actor="shell", call=["Lab"])


@pytest.fixture
def ask(client: Client, robot: NewAgent) -> Callable[..., Any]:
    def post(tool: str = "Lab.Echo", **more: Any) -> Any:
        body = {"request": {"tool_id": tool, "input": {"value": 1}, **more}}
        return client.post("/tools/call", body, "application/json", headers={"OXP-API-Key": robot.key})

    return post


@contextmanager
def readings(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[int]]:
    """How often the number is read on its own."""
    numbers: list[int] = []
    whole = revision._number

    def number() -> int:
        numbers.append(whole())
        return numbers[-1]

    with monkeypatch.context() as patch:
        patch.setattr(revision, "_number", number)
        yield numbers


def test_in_good_order_the_number_is_not_read_but_named(
    ask: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert ask().status_code == 200
    with readings(monkeypatch) as numbers:
        assert ask().status_code == 200
    assert len(numbers) == 0
    assert Call.objects.count() == 2


@pytest.mark.django_db(transaction=True)
def test_a_connection_that_was_ended_while_idle_is_no_ground_for_a_guess(ask: Callable[..., Any]) -> None:
    assert ask().status_code == 200
    if connection.vendor == "postgresql":
        with psycopg.connect(connection.connection.info.dsn, autocommit=True) as other:
            other.execute("SELECT pg_terminate_backend(%s, 5000)", [connection.connection.info.backend_pid])
    assert ask().status_code == 200
    assert Call.objects.filter(state="succeeded").count() == 2


def take_away(robot: NewAgent, lab: ToolkitVersion) -> None:
    remove_perm("registry.call_toolkit", robot.agent.user, lab.toolkit)


def switch_off(robot: NewAgent, lab: ToolkitVersion) -> None:
    agents.set_active(robot.agent, False, actor="shell")


def gone(robot: NewAgent, lab: ToolkitVersion) -> None:
    withdraw(lab, by=None, reason="broken")


@pytest.mark.parametrize(("change", "status"), [(take_away, 400), (switch_off, 401), (gone, 400)])
def test_whatever_changed_a_moment_ago_counts_at_once(
    ask: Callable[..., Any], robot: NewAgent, lab: ToolkitVersion, change: Callable[..., None], status: int
) -> None:
    assert ask().json()["result"]["success"] is True
    change(robot, lab)
    assert ask().status_code == status
    assert Call.objects.filter(state="succeeded").count() == 1


def test_what_was_given_a_moment_ago_counts_at_once(
    ask: Callable[..., Any], robot: NewAgent, lab: ToolkitVersion
) -> None:
    take_away(robot, lab)
    assert ask().status_code == 400
    assign_perm("registry.call_toolkit", robot.agent.user, Toolkit.objects.get(pk=lab.toolkit_id))
    assert ask().json()["result"]["success"] is True


def test_a_refusal_is_told_once(ask: Callable[..., Any]) -> None:
    assert ask().status_code == 200
    before = Event.objects.filter(event="request.refused").count()
    assert ask(nonsense=1).status_code == 400
    assert Event.objects.filter(event="request.refused").count() == before + 1
    before = Call.objects.count()
    assert ask("Lab.Nothing").status_code == 400
    assert Call.objects.count() == before + 1


def test_a_call_id_that_was_used_gives_its_answer_again(ask: Callable[..., Any]) -> None:
    first, second = ask(call_id="mine").json(), ask(call_id="mine").json()
    assert first["result"]["value"] == second["result"]["value"] == 1
    assert Call.objects.filter(call_id="mine").count() == 1


def test_a_guess_grows_old(ask: Callable[..., Any], monkeypatch: pytest.MonkeyPatch) -> None:
    assert ask().status_code == 200
    revision._pin.seen_at -= revision.FRESH
    with readings(monkeypatch) as numbers:
        assert ask().status_code == 200
    assert len(numbers) == 1
