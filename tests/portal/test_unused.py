"""Granted but unused: told after a month or a quarter, never of what is new, and taken away by who may."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta

import pytest
from django.contrib.auth.models import User
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from execution import totals
from execution.portal import given, unused
from execution.portal.standing import Standing
from policy import agents, permissions
from policy.models import Agent
from registry.models import Tool
from tests.factories.registry import published
from tests.portal.conftest import MakeCall

pytestmark = pytest.mark.django_db

Seen = Callable[..., str]


@pytest.fixture
def root(db: None) -> User:
    return User.objects.create_superuser("root")


@pytest.fixture
def long_ago(monkeypatch: pytest.MonkeyPatch) -> None:
    """Events cannot be moved back, so everything so far counts as given before the span."""
    monkeypatch.setattr(given, "since", lambda moment: {})


def found(user: User, days: int = 30) -> list[tuple[str, str]]:
    return [(row["agent"].name, row["toolkit"].name) for row in unused.pairs(Standing.of(user), days)]


def test_a_permission_is_unused_when_no_call_needed_it_for_so_long(
    root: User, agent: Agent, call: MakeCall, long_ago: None
) -> None:
    assert found(root) == found(root, 90) == [("caller", "Calculator")]
    call("denied", ago=timedelta(days=40))
    assert found(root) == [("caller", "Calculator")]
    assert found(root, 90) == []
    totals.count_due(most=10_000)  # the same from totals
    assert found(root) == [("caller", "Calculator")]
    assert found(root, 90) == []
    call(ago=timedelta(minutes=1))
    assert found(root) == []


def test_a_call_of_another_agent_or_another_toolkit_does_not_count(
    root: User, agent: Agent, call: MakeCall, long_ago: None
) -> None:
    other = agents.create("other", actor="shell", call=["Calculator"]).agent
    abacus = published("Abacus").tools.get()
    call(agent=other)
    call(tool=abacus, tool_ref=abacus.tool_id)
    assert found(root) == [("caller", "Calculator")]


def test_what_was_given_lately_is_not_called_unused(root: User, agent: Agent) -> None:
    assert found(root) == []
    assert given.since(datetime.now(UTC) - timedelta(days=1)).keys() >= {("Calculator", "agent:caller", "call")}
    assert given.since(datetime.now(UTC) + timedelta(days=1)) == {}


def test_people_see_what_they_answer_for_and_take_only_what_they_give(
    agent: Agent, tool: Tool, person: Callable[..., User], seen_by: Seen, long_ago: None
) -> None:
    olga, pia, sol = person("olga"), person("pia", "publisher"), person("sol")
    Agent.objects.filter(pk=agent.pk).update(owner=olga)
    permissions.put(tool.version.toolkit, "publish", pia, actor="shell")
    agents.create("other", actor="shell", call=[published("Abacus").toolkit.name])
    assert found(olga) == found(pia) == [("caller", "Calculator")]
    assert found(sol) == []
    assert "by the toolkit’s owner or publisher" in seen_by(olga, "/permissions/unused/")
    page = seen_by(pia, "/permissions/unused/")
    address = "/permissions/of/?holder=agent:caller&amp;toolkit=Calculator&amp;take=call&amp;back=unused"
    assert address in page
    client = Client()
    client.force_login(pia)
    client.post(address.replace("&amp;", "&"), {"change": "take call", "back": "unused"})
    assert "Nothing is unused" in client.get("/permissions/unused/").content.decode()
    assert permissions.held(tool.version.toolkit, agent).permissions == ()


def test_the_agents_page_offers_to_take_it_away(root: User, agent: Agent, seen_by: Seen, long_ago: None) -> None:
    page = seen_by(root, "/agents/caller/")
    assert "for 90 days" in page
    assert "take=call" in page


def test_many_cost_as_few_and_are_searched(root: User, agent: Agent, long_ago: None, seen_by: Seen) -> None:
    client = Client()
    client.force_login(root)

    def cost() -> int:
        with CaptureQueriesContext(connection) as queries:
            assert client.get("/permissions/unused/?days=90").status_code == 200
        return len(queries)

    client.get("/permissions/unused/")
    few = cost()
    for number in range(20):
        agents.create(f"bot{number}", actor="shell", call=["Calculator"])
    assert cost() == few < 25
    page = seen_by(root, "/permissions/unused/?q=BOT7")
    assert "bot7" in page
    assert "bot8" not in page
