"""People in their roles, and calls made at a moment of one's choice; models are imported late."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from django.contrib.auth.models import User
    from django.test import Client

    from execution.models import Call
    from policy.models import Agent
    from registry.models import Tool

MakeCall = Callable[..., "Call"]


@pytest.fixture
def tool(db: None) -> Tool:
    from tests.factories.registry import published

    return published().tools.get()


@pytest.fixture
def agent(tool: Tool) -> Agent:
    from policy import agents

    return agents.create("caller", actor="shell", call=["Calculator"]).agent


@pytest.fixture
def call(agent: Agent, tool: Tool) -> MakeCall:
    """A call's row, made so long ago, as the doors leave it."""
    from random import Random

    from execution.demohistory.past import id_of
    from execution.models import Call

    chance = Random(1)

    def make(state: str = "succeeded", *, ago: timedelta = timedelta(hours=3), **more: Any) -> Call:
        at = more.pop("at", None) or datetime.now(UTC) - ago
        id = id_of(at, chance)
        facts: dict[str, Any] = {
            "agent": agent,
            "tool": tool,
            "tool_ref": tool.tool_id,
            "duration_ms": 10.0 if state == "succeeded" else None,
            "finished_at": at,
            "created_at": at,
        }
        if state in ("awaiting_approval", "queued"):
            facts["finished_at"] = None
        return Call.objects.create(
            id=id, call_id=str(id), fingerprint="f" * 64, door="oxp", state=state, **(facts | more)
        )

    return make


@pytest.fixture
def person(db: None) -> Callable[..., User]:
    """Somebody on the staff, in these groups."""
    from django.contrib.auth.models import Group, User

    def make(name: str, *roles: str) -> User:
        user = User.objects.create_user(name, is_staff=True)
        user.groups.set(Group.objects.filter(name__in=roles))
        return user

    return make


@pytest.fixture
def seen_by() -> Callable[[User, str], str]:
    """The text of a page as this person gets it."""

    def read(user: User, address: str = "/admin/") -> str:
        from django.test import Client

        client: Client = Client()
        client.force_login(user)
        answer = client.get(address)
        assert answer.status_code == 200, answer
        return answer.content.decode()

    return read
