"""A toolkit Later behind a tool that answers later, who may call it, and ways to push, look and let time pass."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import pytest
from django.test import Client

from tests.protocols.wire import call
from tests.services.webhookserver import WebhookTool, encoded, webhooktool

if TYPE_CHECKING:
    from django.contrib.auth.models import User

    from execution.models import Call, Callback
    from policy.agents import NewAgent

Publish = Callable[..., "NewAgent"]


@pytest.fixture
def tool(settings: Any, monkeypatch: pytest.MonkeyPatch) -> Iterator[WebhookTool]:
    """The tool, reachable; doors wait for nothing, for it answers later."""
    monkeypatch.setattr("execution.dispatch.LOOK_AGAIN", 0.01)
    monkeypatch.setattr("execution.dispatch.SHORT_PATIENCE", 0.0)
    settings.PLACET_WEB_THREADS = 0
    settings.PLACET_EGRESS_ALLOW = ["127.0.0.0/8"]
    with webhooktool() as running:
        yield running


@pytest.fixture
def publish(people: dict[str, User], tool: WebhookTool) -> Publish:
    from policy import agents
    from registry import manifests, publishing

    def published(*, attempts: int = 1, timeout: str = "30s", idempotency: str = "keyed", **more: Any) -> NewAgent:
        retry = {"maxAttempts": attempts, "backoff": "0s", "maxBackoff": "1s"}
        runtime = {"type": "webhook-callback", "endpoint": tool.endpoint, "timeout": timeout, "retry": retry}
        thing = {"name": "Thing", "title": "Thing", "description": "A thing.", "idempotency": idempotency}
        output = {"type": "object", "properties": {"n": {"type": "integer"}}}
        manifest = {
            "apiVersion": "placet.dev/v1",
            "kind": "Toolkit",
            "metadata": {"name": "Later", "version": "1.0.0", "title": "Later", "description": "Made for tests."},
            "spec": {"tools": [{**thing, "output": output, "runtime": runtime, **more}]},
        }
        publishing.publish(manifests.import_manifest(manifest, by=people["author"]).version, by=people["author"])
        return agents.create("robot", actor="shell", call=["Later"])

    return published


@pytest.fixture
def robot(publish: Publish) -> NewAgent:
    return publish()


def start(client: Client, robot: NewAgent, call_id: str = "job-1", **more: Any) -> Call:
    """The call, taken by the tool and not answered."""
    from execution.models import Call

    call(client, robot, "Later.Thing", {}, call_id=call_id, **more)
    return Call.objects.get(call_id=call_id)


def push(client: Client, body: Any, headers: dict[str, str], request_id: str = "job-1") -> Any:
    data = body if isinstance(body, bytes) else encoded(body)
    path = f"/v1/tool-callbacks/{request_id}"
    return client.generic("POST", path, data, headers=headers, CONTENT_TYPE="application/json")


def bearer(token: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {token}"}


def waiting(fence: int = 1) -> Callback:
    from execution.models import Callback

    return Callback.objects.get(fence=fence)


def look(fence: int = 1) -> None:
    """As a worker does when two seconds have passed."""
    from execution.models import Callback
    from execution.pipeline import answering
    from registry.clock import Later

    Callback.objects.filter(fence=fence, state="open").update(next_poll_at=Later(-0.1))
    answering.look(waiting(fence).pk)


def let_time_pass(fence: int = 1) -> None:
    """The attempt's time is over."""
    from execution.models import Callback
    from registry.clock import Later

    Callback.objects.filter(fence=fence).update(deadline=Later(-0.1))


def events() -> list[str]:
    from audit.models import Event

    return list(Event.objects.filter(subject_kind="call").order_by("id").values_list("event", flat=True))


def ended(row: Any) -> tuple[str, Any]:
    row.refresh_from_db()
    return row.state, json.loads(row.result or row.error)
