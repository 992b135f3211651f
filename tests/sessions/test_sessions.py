"""Sessions themselves: who may open them, how many, who sees them, and how they end."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pytest
from django.test import Client

from tests.sessions.conftest import Ask, Publish
from tests.sessions.worker import Worker, fall_silent, state_of

if TYPE_CHECKING:
    from django.contrib.auth.models import User

    from policy.agents import NewAgent
    from registry.models import ToolkitVersion

Hire = Callable[..., Worker]
pytestmark = pytest.mark.django_db


def opened(client: Client, agent: NewAgent, body: Any) -> Any:
    return Worker(client, agent).send("POST", "/v1/sessions", body)


def test_create_agent_gives_the_permission_to_serve(client: Client, warehouse: ToolkitVersion, capsys: Any) -> None:
    import json

    from django.core.management import call_command

    call_command("create_agent", "picker", serve=["Warehouse"], json=True)
    key = json.loads(capsys.readouterr().out)["key"]
    answer = client.post(
        "/v1/sessions",
        {"serves": ["Warehouse"]},
        content_type="application/json",
        headers={"Authorization": f"Bearer {key}"},
    )
    assert answer.status_code == 201


def test_an_opened_session_tells_what_a_worker_must_know(worker: Worker, settings: Any) -> None:
    (told,) = worker.send("GET", "/v1/sessions").json()["sessions"]
    assert told == worker.send("GET", f"/v1/sessions/{worker.session}").json()
    assert (told["sessionId"], told["serves"]) == (worker.session, ["Warehouse"])
    assert (told["lease"], told["idleTimeout"]) == (settings.PLACET_LEASE, settings.PLACET_SESSION_IDLE)
    assert 1_700_000_000_000 < told["createdAt"] < 5_000_000_000_000


def test_a_toolkit_that_the_caller_may_not_see_is_unknown_to_it_and_one_that_it_may_only_call_is_refused(
    client: Client, warehouse: ToolkitVersion, robot: NewAgent
) -> None:
    from policy import agents

    stranger = agents.create("stranger", actor="shell")
    hidden = opened(client, stranger, {"serves": ["Warehouse"]})
    missing = opened(client, stranger, {"serves": ["Wharehose"]})
    assert (hidden.status_code, missing.status_code) == (404, 404)
    assert hidden.content.replace(b"Warehouse", b"?") == missing.content.replace(b"Wharehose", b"?")
    seen = opened(client, robot, {"serves": ["Warehouse"]})
    assert (seen.status_code, "'serve' on Warehouse" in seen.json()["error"]["message"]) == (403, True)


def test_all_of_the_toolkits_or_none(client: Client, publish: Publish, hire: Hire) -> None:
    from execution.models import Session
    from policy import agents

    publish()
    publish("Kitchen")
    cook = agents.create("cook", actor="shell", serve=["Kitchen"])
    assert opened(client, cook, {"serves": ["kitchen", "Warehouse"]}).status_code == 404
    assert Session.objects.count() == 0
    assert opened(client, cook, {"serves": ["kitchen", "KITCHEN"]}).json()["serves"] == ["Kitchen"]


@pytest.mark.parametrize(
    "body",
    [
        {},
        [],
        {"serves": []},
        {"serves": "Warehouse"},
        {"serves": [1]},
        {"serves": [""]},
        {"serves": ["x" * 65]},
        {"serves": ["Warehouse"] * 101},
        {"serves": ["Warehouse"], "name": "x"},
    ],
)
def test_a_bad_wish_is_400(worker: Worker, body: Any) -> None:
    answer = worker.send("POST", "/v1/sessions", body)
    assert (answer.status_code, bool(answer.json()["error"]["message"])) == (400, True)


def test_callers_see_their_own_sessions_newest_first(worker: Worker, hire: Hire) -> None:
    hire("other")
    second = hire(agent=worker.agent)
    told = worker.send("GET", "/v1/sessions").json()["sessions"]
    assert [each["sessionId"] for each in told] == [second.session, worker.session]


def test_a_caller_may_have_only_so_many_open(worker: Worker, hire: Hire, settings: Any) -> None:
    settings.PLACET_MAX_SESSIONS = 2
    second = hire(agent=worker.agent)
    full = worker.send("POST", "/v1/sessions", {"serves": ["Warehouse"]})
    assert (full.status_code, "Retry-After" in full) == (429, True)
    assert hire("other").session
    assert second.close() == 204
    assert hire(agent=worker.agent).session


def test_an_idle_session_expires_unless_it_holds_a_request(worker: Worker, hire: Hire, ask: Ask) -> None:
    from execution.models import Session
    from execution.sweeping import sweep
    from registry.clock import Later

    busy, call = hire("busy"), ask()
    busy.beat(call)
    Session.objects.update(seen_at=Later(-100_000))
    sweep()
    assert worker.send("GET", f"/v1/sessions/{worker.session}/requests").status_code == 404
    assert (busy.beat(call), busy.answer(call, bin=1), state_of(call)) == (200, 200, "succeeded")
    sweep()
    assert Session.objects.count() == 0


def test_a_session_that_asks_for_work_is_not_idle(worker: Worker) -> None:
    from execution.models import Session
    from execution.sweeping import sweep
    from registry.clock import Later

    Session.objects.update(seen_at=Later(-100_000))
    assert worker.requests() == []
    sweep()
    assert worker.requests() == []


def test_opening_and_closing_are_on_the_agents_trail(worker: Worker) -> None:
    from audit.models import Event

    worker.close()
    told = Event.objects.filter(subject_kind="agent", subject_id="picker", event__startswith="session.")
    assert [(event.event, worker.session in event.detail) for event in told.order_by("seq")] == [
        ("session.opened", True),
        ("session.closed", True),
    ]


def test_a_permission_that_is_taken_away_ends_the_service_at_once(
    worker: Worker, ask: Ask, warehouse: ToolkitVersion
) -> None:
    from guardian.shortcuts import remove_perm

    held, waiting = ask(), ask()
    worker.beat(held)
    remove_perm("registry.serve_toolkit", worker.agent.agent.user, warehouse.toolkit)
    assert worker.requests() == worker.requests(state="PROCESSING") == []
    assert [worker.beat(held), worker.answer(held), worker.beat(waiting)] == [404] * 3
    assert (state_of(held), state_of(waiting)) == ("running", "queued")


def test_a_call_that_nobody_serves_says_so_while_it_waits_and_when_it_expires(
    warehouse: ToolkitVersion, ask: Ask, hire: Hire
) -> None:
    from execution.models import Call
    from execution.outcomes import outcome_of
    from execution.sweeping import sweep
    from registry.clock import Later

    call = ask()
    assert "no session serves Warehouse just now" in outcome_of(call).failure.message  # type: ignore[union-attr]
    hire()
    assert "no session" not in outcome_of(call).failure.message  # type: ignore[union-attr]
    Call.objects.filter(pk=call.pk).update(deadline=Later(-1))
    sweep()
    assert state_of(call) == "expired"
    failure = outcome_of(call).failure
    assert failure is not None
    assert (failure.message, failure.can_retry) == (
        "No session that serves Warehouse took the call in time; it did not run",
        True,
    )


def test_a_call_that_lost_three_workers_is_given_up(worker: Worker, ask: Ask, hire: Hire) -> None:
    from execution.sweeping import sweep

    call = ask()
    for number in range(3):
        other = hire(f"other-{number}")
        assert other.beat(call) == 200
        fall_silent(call)
        sweep()
    assert state_of(call) == "failed"


def test_a_pulled_tool_never_runs_in_the_web_or_in_a_worker(
    worker: Worker, ask: Ask, monkeypatch: pytest.MonkeyPatch
) -> None:
    from execution.pipeline.perform import perform

    rung: list[str] = []
    monkeypatch.setattr("execution.bell.ring", lambda topic, **_: rung.append(topic))
    call = ask()
    perform(call.pk)
    assert (state_of(call), call.dispatch) == ("queued", "session")
    assert rung == [f"pull:{call.tool.version.toolkit_id}"] * 2 if call.tool else False


@pytest.mark.parametrize(
    ("runtime", "auth", "reason"),
    [
        ({"dispatch": "inline"}, None, "waits in the queue"),
        ({}, {"profile": "bearer", "secretRef": "key"}, "credentials of their own"),
        ({"endpoint": "https://example.com"}, None, "endpoint"),
    ],
)
def test_a_binding_that_makes_no_sense_for_outside_workers_is_refused(
    author: User, runtime: Any, auth: Any, reason: str
) -> None:
    from registry import manifests
    from registry.fields import ManifestError

    tool = {"name": "X", "description": "X.", "runtime": {"type": "session", **runtime}, "auth": auth}
    manifest = {"apiVersion": "placet.dev/v1", "kind": "Toolkit", "metadata": {"name": "W", "version": "1.0.0"}}
    with pytest.raises(ManifestError, match=reason):
        manifests.import_manifest({**manifest, "spec": {"tools": [tool]}}, by=author)
