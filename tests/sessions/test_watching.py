"""Operators hear how each attempt in a worker's hands ended, also if the worker never tells."""

from __future__ import annotations

import pytest

from execution import hooks
from execution.hooks import Event, Failed, Invoking
from tests.sessions.conftest import Ask
from tests.sessions.worker import Worker, fall_silent, state_of

pytestmark = pytest.mark.django_db


@pytest.fixture
def seen(monkeypatch: pytest.MonkeyPatch) -> list[Event]:
    events: list[Event] = []
    monkeypatch.setattr(hooks, "_hooks", (("seen", events.append),))
    monkeypatch.setattr("execution.hooks.transaction.on_commit", lambda act, **_: act())
    return events


def test_a_request_that_lost_its_worker_is_seen_failing_and_the_next_attempt_by_itself(
    worker: Worker, ask: Ask, seen: list[Event]
) -> None:
    from execution.sweeping import sweep

    call = ask()
    worker.beat(call)
    fall_silent(call)
    sweep()
    worker.answer(call, bin=1)
    assert [(type(event), event.attempt) for event in seen] == [(Invoking, 1), (Failed, 1)]
    worker.requests()
    worker.beat(call)
    worker.answer(call, bin=1)
    assert [event.attempt for event in seen] == [1, 1, 2, 2]


def test_a_request_that_its_caller_took_back_is_seen_failing_once(worker: Worker, ask: Ask, seen: list[Event]) -> None:
    from execution import calls

    call = ask()
    worker.beat(call)
    call.refresh_from_db()
    calls.cancel(call, actor="agent:robot")
    assert (worker.answer(call, bin=1), state_of(call)) == (409, "cancelled")
    began, ended = seen
    assert isinstance(ended, Failed)
    assert (began.attempt, ended.attempt, ended.error) == (1, 1, "canceled")
