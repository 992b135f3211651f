"""A session's claim and answer go the road of every call: judged again, approved, limited, redacted, recorded."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pytest

from tests.sessions.conftest import Ask, Publish
from tests.sessions.worker import Worker, events, state_of, told

if TYPE_CHECKING:
    from django.contrib.auth.models import User

    from policy.agents import NewAgent
    from registry.models import ToolkitVersion

Hire = Callable[..., Worker]
pytestmark = pytest.mark.django_db

NEEDS = {"secrets": [{"id": "MAPS"}], "authorization": [{"id": "google"}], "userId": True}


@pytest.fixture
def brought() -> Any:
    from execution.messages import CallContext

    return CallContext(
        secrets={"MAPS": "maps-secret-4711", "OTHER": "other-secret-4711"},
        authorization={"google": "google-token-4711", "github": "github-token-4711"},
        user_id="ana@example.com",
    )


def test_only_the_holder_is_given_what_the_caller_brought_and_only_what_the_tool_requires(
    publish: Publish, hire: Hire, ask: Ask, brought: Any
) -> None:
    publish(requirements=NEEDS)
    worker, other = hire(), hire("other")
    call = ask(context=brought)
    pending = worker.send("GET", f"/v1/sessions/{worker.session}/requests").content
    assert b"4711" not in pending
    assert b"ana@" not in pending
    assert worker.requests()[0]["requires"] == {"secrets": ["MAPS"], "authorization": ["google"], "userId": True}
    worker.beat(call)
    assert other.requests(state="PROCESSING") == []
    (held,) = worker.requests(state="PROCESSING")
    assert held["context"] == {
        "secrets": {"MAPS": "maps-secret-4711"},
        "authorization": {"google": "google-token-4711"},
        "userId": "ana@example.com",
    }


def test_a_tool_that_requires_nothing_gets_nothing(worker: Worker, ask: Ask, brought: Any) -> None:
    call = ask(context=brought)
    worker.beat(call)
    (held,) = worker.requests(state="PROCESSING")
    assert held["context"] == {"secrets": {}, "authorization": {}, "userId": ""}


def test_secrets_in_an_answer_or_an_error_reach_neither_the_caller_nor_the_record(
    publish: Publish, hire: Hire, ask: Ask, brought: Any
) -> None:
    from audit.models import Event

    publish(requirements=NEEDS)
    worker, good, bad = hire(), ask(context=brought), ask(context=brought)
    worker.beat(good)
    worker.beat(bad)
    assert worker.answer(good, url="https://maps/?key=maps-secret-4711", github="github-token-4711") == 200
    assert worker.fail(bad, "maps-secret-4711 was refused", developerMessage="google-token-4711") == 200
    for call in (good, bad):
        outcome = told(call)
        everything = [str(outcome.value), str(outcome.failure), call.result, call.error, call.input]
        everything += [attempt.detail for attempt in call.attempts.all()]
        everything += Event.objects.filter(subject_id=str(call.pk)).values_list("detail", flat=True)
        assert "4711" not in " ".join(everything)


def test_a_tool_that_was_withdrawn_meanwhile_is_not_run(
    worker: Worker, ask: Ask, warehouse: ToolkitVersion, author: User
) -> None:
    from registry.publishing import withdraw

    waiting, held = ask(), ask()
    worker.beat(held)
    withdraw(warehouse, by=author, reason="broken")
    assert (worker.beat(waiting), state_of(waiting)) == (409, "denied")
    assert (worker.beat(held), worker.answer(held, bin=1), state_of(held)) == (200, 200, "succeeded")


def test_a_caller_who_was_shut_out_meanwhile_gets_nothing_run(worker: Worker, ask: Ask, robot: NewAgent) -> None:
    from policy import agents

    call = ask()
    agents.set_active(robot.agent, False, actor="shell")
    assert (worker.beat(call), state_of(call)) == (409, "denied")


def test_a_call_that_people_must_agree_to_is_no_request_before_they_did_and_uses_their_answer_up(
    publish: Publish, hire: Hire, ask: Ask
) -> None:
    from django.contrib.auth.models import User

    from policy import approvals
    from policy.models import Approval
    from tests.execution.approving import approver

    version = publish(risk="high", reviewed_by=User.objects.create_user("reviewer"))
    ana = approver("ana", version.toolkit)
    worker, call = hire(), ask()
    assert (call.state, worker.requests(), worker.beat(call)) == ("awaiting_approval", [], 409)
    approvals.decide(Approval.objects.get(call=call.pk).pk, by=ana, answer="approve", reason="fine")
    assert [each["requestId"] for each in worker.requests()] == [str(call.pk)]
    assert (worker.beat(call), Approval.objects.get(call=call.pk).state) == (200, "consumed")
    assert worker.answer(call, bin=1) == 200
    assert state_of(call) == "succeeded"


def test_a_tool_that_keeps_failing_is_left_alone(publish: Publish, hire: Hire, ask: Ask, settings: Any) -> None:
    settings.PLACET_BREAKER_FAILURES = 2
    publish()
    worker = hire()
    waiting = ask()
    for _ in range(2):
        call = ask()
        worker.beat(call)
        worker.fail(call, "down", canRetry=True)
    assert worker.beat(waiting) == 409
    assert (state_of(waiting), told(waiting).failure.details["breaker"]) == ("failed", "open")


def test_only_so_many_calls_of_a_tool_are_worked_on_at_once(worker: Worker, ask: Ask, settings: Any) -> None:
    from execution.models import Call

    settings.PLACET_TOOL_CONCURRENCY = 2
    first, second, third = ask(), ask(), ask()
    assert (worker.beat(first), worker.beat(second), worker.beat(third)) == (200, 200, 409)
    assert worker.requests() == []  # it is offered again soon, and not at once
    assert worker.answer(first) == 200
    Call.objects.filter(pk=third.pk).update(not_before=None)
    assert worker.beat(third) == 200


def test_a_failure_that_may_pass_is_tried_again_where_the_manifest_says_so(
    publish: Publish, hire: Hire, ask: Ask
) -> None:
    publish(attempts=2)
    worker, call = hire(), ask()
    worker.beat(call)
    assert worker.fail(call, "busy", canRetry=True) == 200
    assert (state_of(call), worker.requests()[0]["attempt"]) == ("queued", 2)
    assert (worker.beat(call), worker.fail(call, "still busy", canRetry=True)) == (200, 200)
    assert (state_of(call), told(call).failure.message) == ("failed", "still busy")
    assert events(call)[-4:] == ["started", "retry_scheduled", "started", "failed"]


@pytest.mark.parametrize(("idempotency", "can_retry"), [("non_idempotent", True), ("keyed", False)])
def test_other_failures_are_final(publish: Publish, hire: Hire, ask: Ask, idempotency: str, can_retry: bool) -> None:
    publish(attempts=3, idempotency=idempotency)
    worker, call = hire(), ask()
    worker.beat(call)
    assert worker.fail(call, "no", canRetry=can_retry) == 200
    assert state_of(call) == "failed"


def test_the_trail_names_the_worker_and_its_session(worker: Worker, ask: Ask) -> None:
    from audit.models import Event

    call = ask()
    worker.beat(call)
    worker.answer(call, bin=1)
    trail = Event.objects.filter(subject_kind="call", subject_id=str(call.pk)).order_by("seq")
    assert [(event.event, event.actor) for event in trail] == [
        ("call.received", "agent:robot"),
        ("call.decided", "system"),
        ("call.queued", "system"),
        ("call.started", "agent:picker"),
        ("call.succeeded", "agent:picker"),
    ]
    assert worker.session in trail[3].detail


def test_a_late_answer_is_recorded_a_few_times_and_changes_nothing(worker: Worker, ask: Ask) -> None:
    from execution.sessions import pulls

    call = ask()
    worker.beat(call)
    worker.answer(call, bin=1)
    for _ in range(pulls.MAX_REFUSED + 5):
        assert worker.answer(call, bin=2) == 409
    assert events(call).count("callback_refused") == pulls.MAX_REFUSED
    assert told(call).value == {"bin": 1}


def test_a_held_call_whose_key_is_gone_hides_no_other(worker: Worker, ask: Ask) -> None:
    from execution.models import Call

    gone, good = ask(), ask()
    for call in (gone, good):
        worker.beat(call)
    Call.objects.filter(pk=gone.pk).update(sealed=b"\x02zzbroken")
    (request,) = worker.requests(state="PROCESSING")
    assert request["requestId"] == str(good.pk)
    page = worker.page(state="PROCESSING", limit=1)
    assert (page["requests"], page["next"]) == ([], str(gone.pk))


def test_an_answer_to_a_call_whose_key_is_gone_is_not_shown(worker: Worker, ask: Ask) -> None:
    from execution.models import Call

    call = ask()
    worker.beat(call)
    Call.objects.filter(pk=call.pk).update(sealed=b"\x02zzbroken")
    assert worker.answer(call, bin=4711) == 200
    assert (state_of(call), "4711" in call.result) == ("failed", False)
