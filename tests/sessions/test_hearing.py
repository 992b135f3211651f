"""A worker is not blamed for a silence in which nobody could hear it."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import pytest
from django.db import IntegrityError, OperationalError

from tests.sessions.conftest import Ask, Publish
from tests.sessions.worker import Worker, fall_silent, run_late, state_of, told

Hire = Callable[..., Worker]
pytestmark = pytest.mark.django_db


@pytest.fixture
def worker(publish: Publish, hire: Hire) -> Worker:
    publish(idempotency="non_idempotent")
    return hire()


@pytest.fixture
def begun(monkeypatch: pytest.MonkeyPatch, settings: Any) -> Callable[[float], None]:
    """Heartbeats reach this process since so many leases."""

    def begin(leases: float) -> None:
        since = time.monotonic() - leases * settings.PLACET_LEASE
        monkeypatch.setattr("execution.sessions.hearing._since", since)

    return begin


def test_a_fresh_process_leaves_a_worker_one_lease_to_say_that_it_lives(
    worker: Worker, ask: Ask, begun: Callable[[float], None]
) -> None:
    from execution.sweeping import sweep

    call = ask()
    worker.beat(call)
    fall_silent(call)
    begun(0.5)
    sweep()
    assert (worker.beat(call), state_of(call)) == (200, "running")
    begun(1.5)
    sweep()
    assert (worker.answer(call, bin=1), state_of(call)) == (200, "succeeded")


def test_who_stays_silent_after_that_is_given_up(worker: Worker, ask: Ask, begun: Callable[[float], None]) -> None:
    from execution.sweeping import sweep

    call = ask()
    worker.beat(call)
    fall_silent(call)
    begun(1.5)
    sweep()
    assert state_of(call) == "unknown"


def test_a_process_that_hears_nobody_gives_up_no_workers_call(
    worker: Worker, ask: Ask, monkeypatch: pytest.MonkeyPatch
) -> None:
    from execution.sweeping import sweep

    call = ask()
    worker.beat(call)
    fall_silent(call)
    monkeypatch.setattr("execution.sessions.hearing._since", None)
    sweep()
    assert state_of(call) == "running"


def test_another_worker_cannot_take_it_before_either(
    worker: Worker, ask: Ask, hire: Hire, begun: Callable[[float], None]
) -> None:
    other, call = hire("other"), ask()
    worker.beat(call)
    fall_silent(call)
    begun(0.5)
    assert (other.beat(call), state_of(call)) == (409, "running")
    assert worker.answer(call, bin=1) == 200


def test_what_ended_in_time_may_be_told_once_somebody_hears_again(
    worker: Worker, ask: Ask, begun: Callable[[float], None]
) -> None:
    from execution.sweeping import sweep

    call = ask()
    worker.beat(call)
    fall_silent(call)
    run_late(call)
    begun(0.5)
    sweep()
    assert (worker.beat(call), worker.answer(call, bin=1)) == (200, 200)
    assert told(call).value == {"bin": 1}


def test_what_went_on_for_too_long_ends_all_the_same(worker: Worker, ask: Ask, begun: Callable[[float], None]) -> None:
    from execution.sweeping import sweep

    call = ask()
    worker.beat(call)
    run_late(call)
    begun(0.5)
    assert worker.beat(call) == 200
    begun(1.5)
    sweep()
    assert (worker.beat(call), state_of(call)) == (409, "timed_out")


@pytest.mark.parametrize(("error", "is_sound"), [(OperationalError, False), (IntegrityError, True)])
def test_while_the_database_is_away_nobody_is_heard(
    monkeypatch: pytest.MonkeyPatch, error: type[Exception], is_sound: bool
) -> None:
    from execution import watchman
    from execution.sessions import hearing

    def fails() -> None:
        raise error

    monkeypatch.setattr(watchman, "sweep", fails)
    monkeypatch.setattr(watchman, "seal_new_events", fails)
    monkeypatch.setattr("execution.watchman.keyuse.write_down", fails)
    monkeypatch.setattr("execution.watchman.connection.close", lambda: None)
    assert hearing.is_sound()
    watchman._make_a_round()
    assert hearing.is_sound() is is_sound
