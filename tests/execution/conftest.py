"""A published lab of misbehaving tools, an agent that may call it, and ways to call."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth import get_user_model
from guardian.shortcuts import assign_perm

from config.celery import app
from execution.messages import CallContext, CallOutcome, CallRequest
from execution.pipeline.admit import admit
from policy import agents
from policy.caller import Caller
from registry.manifests import import_folder
from registry.models import Toolkit, ToolkitVersion
from registry.publishing import publish
from registry.toolref import ToolRef

LAB = Path(__file__).parents[1] / "toolkits" / "lab"

Call = Callable[..., CallOutcome]


@pytest.fixture
def people(db: None) -> dict[str, Any]:
    users = get_user_model().objects
    return {name: users.create_user(name, password="a password of some length") for name in ("author", "reviewer")}


@pytest.fixture
def lab(people: dict[str, Any]) -> ToolkitVersion:
    (imported,) = import_folder(LAB, by=people["author"])
    return publish(imported.version, by=people["author"], reviewed_by=people["reviewer"])


@pytest.fixture
def caller(lab: ToolkitVersion) -> Caller:
    agent = agents.create("tester", actor="shell").agent
    assign_perm("registry.call_toolkit", agent.user, Toolkit.objects.get(name="Lab"))
    return Caller(agent_id=agent.pk, name=agent.name, user_id=agent.user_id, credential="key:test")


@pytest.fixture
def at_once() -> Iterator[None]:
    """Queued calls run as soon as they are sent, in this process."""
    app.conf.task_always_eager = app.conf.task_eager_propagates = True
    yield
    app.conf.task_always_eager = app.conf.task_eager_propagates = False


@pytest.fixture
def unsent(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """Nothing reaches a worker: as if the broker lost it. Holds the ids that would have been sent."""
    lost: list[Any] = []
    monkeypatch.setattr("execution.dispatch.send", lambda call, delay=0.0: lost.append(call))
    return lost


@pytest.fixture
def call(caller: Caller) -> Call:
    """Call a tool of the lab by name; keyword arguments are its input."""

    def make(tool: str, *, wait: float = 0.0, call_id: str | None = None, context: CallContext | None = None, **arguments: Any) -> CallOutcome:
        text = tool if "." in tool else f"Lab.{tool}"
        return admit(
            CallRequest(
                caller=caller,
                door="test",
                tool_text=text,
                tool_ref=ToolRef.parse(text),
                arguments=arguments,
                context=context or CallContext(),
                call_id=call_id,
                wait=wait,
            )
        )

    return make
