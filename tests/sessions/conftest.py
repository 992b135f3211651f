"""A toolkit Warehouse that outside workers pull, an agent that calls it, and workers that serve it."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pytest
from django.test import Client

from tests.sessions.worker import Worker

if TYPE_CHECKING:
    from django.contrib.auth.models import User

    from execution.models import Call
    from policy.agents import NewAgent
    from registry.models import ToolkitVersion

Publish = Callable[..., "ToolkitVersion"]
Ask = Callable[..., "Call"]

OPEN_OBJECT = {"type": "object"}


@pytest.fixture
def author(db: None) -> User:
    from django.contrib.auth.models import User

    return User.objects.create_user("author")


@pytest.fixture
def publish(author: User) -> Publish:
    from registry import manifests, publishing

    def published(
        name: str = "Warehouse",
        *,
        timeout: str = "30s",
        idempotency: str = "keyed",
        attempts: int = 1,
        backoff: str = "0s",
        reviewed_by: Any = None,
        **more: Any,
    ) -> ToolkitVersion:
        retry = {"maxAttempts": attempts, "backoff": backoff, "maxBackoff": "30s"}
        tool = {
            "name": "Locate",
            "title": "Locate",
            "description": "Finds where a part lies.",
            "idempotency": idempotency,
            "input": {"type": "object"},
            "runtime": {"type": "session", "timeout": timeout, "retry": retry},
            **more,
        }
        manifest = {
            "apiVersion": "placet.dev/v1",
            "kind": "Toolkit",
            "metadata": {"name": name, "version": "1.0.0", "title": name, "description": "Made for tests."},
            "spec": {"tools": [tool]},
        }
        imported = manifests.import_manifest(manifest, by=author).version
        return publishing.publish(imported, by=author, reviewed_by=reviewed_by)

    return published


@pytest.fixture
def warehouse(publish: Publish) -> ToolkitVersion:
    return publish()


@pytest.fixture
def robot(db: None) -> NewAgent:
    """An agent that may call every toolkit there is."""
    from policy import agents

    return agents.create("robot", actor="shell", call_all=True)


@pytest.fixture
def hire(client: Client) -> Callable[..., Worker]:
    """A worker of its own agent, or one more of an agent, with an open session."""
    from policy import agents

    def hired(name: str = "picker", *toolkits: str, agent: NewAgent | None = None) -> Worker:
        served = toolkits or ("Warehouse",)
        return Worker(client, agent or agents.create(name, actor="shell", serve=served)).open(*served)

    return hired


@pytest.fixture
def worker(warehouse: ToolkitVersion, hire: Callable[..., Worker]) -> Worker:
    return hire()


@pytest.fixture
def ask(robot: NewAgent) -> Ask:
    """Make a call that a session must pull; its row, at once."""
    from execution.messages import CallContext, CallRequest
    from execution.models import Call
    from execution.pipeline.admit import admit
    from policy.caller import Caller
    from registry.toolref import ToolRef

    def asked(
        arguments: dict[str, Any] | None = None,
        *,
        tool: str = "Warehouse.Locate",
        call_id: str | None = None,
        context: CallContext | None = None,
        agent: NewAgent = robot,
    ) -> Call:
        who = agent.agent
        outcome = admit(
            CallRequest(
                caller=Caller(agent_id=who.pk, name=who.name, user_id=who.user_id, credential="key:test"),
                door="test",
                tool_text=tool,
                tool_ref=ToolRef.parse(tool),
                arguments=arguments or {},
                context=context or CallContext(),
                call_id=call_id,
                wait=0.0,
            )
        )
        return Call.objects.get(pk=outcome.id)

    return asked


@pytest.fixture(scope="session")
def client() -> Client:
    """As a worker's program would: no cookies, CSRF enforced."""
    return Client(enforce_csrf_checks=True)
