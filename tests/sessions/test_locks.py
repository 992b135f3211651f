"""The lock on a pulled call: checks 17 to 21 of the specification's section (b)."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pytest

from tests.sessions.conftest import Ask, Publish
from tests.sessions.worker import Worker, events, fall_silent, is_silent, state_of, told

if TYPE_CHECKING:
    pass

Hire = Callable[..., Worker]
pytestmark = pytest.mark.django_db


def test_17_18_a_silent_worker_loses_the_request_to_the_next_one(worker: Worker, ask: Ask, hire: Hire) -> None:
    other, call = hire("other"), ask()
    assert worker.beat(call) == 200
    assert (other.beat(call), other.answer(call), other.fail(call)) == (409, 409, 409)
    fall_silent(call)
    assert other.beat(call) == 200
    assert (worker.beat(call), worker.answer(call, bin=1), worker.fail(call)) == (409, 409, 409)
    assert other.answer(call, bin=2) == 200
    assert told(call).value == {"bin": 2}
    assert [attempt.status for attempt in call.attempts.all()] == ["lost", "succeeded"]
    assert events(call).count("stale_write") == 2


def test_17_the_sweeper_makes_a_stale_request_available_again(worker: Worker, ask: Ask, hire: Hire) -> None:
    from execution.sweeping import sweep

    other, call = hire("other"), ask()
    worker.beat(call)
    fall_silent(call)
    sweep()
    (request,) = other.requests()
    assert (request["requestId"], request["attempt"]) == (str(call.pk), 2)


def test_17_what_must_not_run_twice_is_left_to_a_person(publish: Publish, hire: Hire, ask: Ask) -> None:
    publish(idempotency="non_idempotent")
    first, second, call = hire("first"), hire("second"), ask()
    first.beat(call)
    fall_silent(call)
    assert second.beat(call) == 409
    assert (state_of(call), told(call).failure.code.wire) == ("unknown", "outcome_unknown")
    assert (first.beat(call), first.answer(call, bin=1)) == (409, 409)
    assert state_of(call) == "unknown"


def test_18_a_heartbeat_after_the_lease_keeps_what_nobody_else_took(worker: Worker, ask: Ask) -> None:
    call = ask()
    worker.beat(call)
    fall_silent(call)
    assert (worker.beat(call), state_of(call)) == (200, "running")
    call.refresh_from_db()
    assert (call.fence, is_silent(call)) == (1, False)


def test_18_a_heartbeat_after_the_request_was_given_up_revives_nothing(worker: Worker, ask: Ask) -> None:
    from execution.sweeping import sweep

    call = ask()
    worker.beat(call)
    fall_silent(call)
    sweep()
    assert state_of(call) == "queued"
    assert worker.beat(call) == 409  # it has not heard yet that it lost the request
    (request,) = worker.requests()
    assert request["attempt"] == 2
    assert (worker.beat(call), state_of(call)) == (200, "running")


@pytest.mark.parametrize("clock", [9_999_999_999_999_999, -5, 0, 1.5e300, 2**63])
def test_19_the_workers_clock_moves_nothing(worker: Worker, ask: Ask, clock: float, settings: Any) -> None:
    from datetime import timedelta

    from django.utils import timezone

    call = ask()
    body = {"state": "PROCESSING", "heartbeat": clock}
    assert (worker.beat(call, body), worker.beat(call, body)) == (200, 200)
    call.refresh_from_db()
    assert call.lease_until is not None
    left = call.lease_until - timezone.now()
    assert timedelta(seconds=settings.PLACET_LEASE - 5) < left <= timedelta(seconds=settings.PLACET_LEASE + 1)


def test_20_a_heartbeat_costs_two_queries_and_no_event(
    worker: Worker, ask: Ask, django_assert_max_num_queries: Any
) -> None:
    from audit.models import Event

    call = ask()
    worker.beat(call)
    worker.beat(call)
    before = Event.objects.count()
    with django_assert_max_num_queries(4):  # what a savepoint of the test itself costs is counted too
        assert worker.beat(call) == 200
    assert Event.objects.count() == before


def test_21_a_heartbeat_that_races_after_an_error_never_revives_the_call(
    publish: Publish, hire: Hire, ask: Ask
) -> None:
    publish(attempts=3)
    worker, call = hire(), ask()
    worker.beat(call)
    assert worker.fail(call, "busy", canRetry=True) == 200
    assert state_of(call) == "queued"
    assert (worker.beat(call), worker.answer(call, bin=1)) == (409, 409)
    assert state_of(call) == "queued"
