"""A call that had an attempt and waits for another one: what is told of it then is true, and its result is not lost."""

import time
from datetime import timedelta
from pathlib import Path
from typing import Any

import orjson
import pytest
from django.db import IntegrityError

from audit.models import Event
from execution import bell, calls, moves
from execution.errors import ErrorCode, Failure
from execution.models import Attempt, Call, State
from execution.pipeline.perform import perform
from execution.runtimes.base import RunResult
from execution.sentences import sentence
from execution.sweeping import sweep
from policy import agents
from registry.clock import Later
from tests.execution.conftest import Call as MakeCall
from tests.execution.test_perform import claimed, expire_lease

pytestmark = pytest.mark.django_db

FAILED = Failure(code=ErrorCode.EXECUTION_FAILED, message="Not yet", can_retry=True)


def tried(call: MakeCall, ledger: Path) -> Call:
    """A call whose first attempt failed and that is to be tried again."""
    claim = claimed(call, "Flaky", ledger=str(ledger), fails=1)
    assert calls.retry(claim, FAILED, 20.0)
    return Call.objects.get(pk=claim.id)


def last_event(call: Call) -> Event:
    return Event.objects.filter(subject_kind="call", subject_id=str(call.pk)).order_by("-seq")[0]


def told(call: Call) -> str:
    """The last line of its timeline."""
    event = last_event(call)
    return sentence(event.event, event.actor, orjson.loads(event.detail))


def test_a_call_cancelled_between_two_attempts_is_not_said_never_to_have_run(
    call: MakeCall, unsent: list[Any], ledger: Path
) -> None:
    after = calls.cancel(tried(call, ledger), actor="agent:tester")

    assert (after.state, orjson.loads(after.error)["message"]) == (
        State.CANCELLED,
        "The call was cancelled before another attempt",
    )
    assert told(after) == "Agent tester cancelled the call before another attempt."


def test_a_call_that_expires_between_two_attempts_is_not_said_never_to_have_run(
    call: MakeCall, unsent: list[Any], ledger: Path
) -> None:
    row = tried(call, ledger)
    Call.objects.filter(pk=row.pk).update(deadline=Later(-1))
    sweep()

    row.refresh_from_db()
    assert (row.state, orjson.loads(row.error)["message"]) == (
        State.EXPIRED,
        "No worker could run the call again in time",
    )
    assert told(row) == "No worker could run the call again in time."


def test_a_cancellation_that_looked_before_the_attempt_says_what_happened_since(
    call: MakeCall, unsent: list[Any], ledger: Path
) -> None:
    claim = claimed(call, "Flaky", ledger=str(ledger), fails=1)
    before = Call.objects.get(pk=claim.id)
    before.fence, before.state = 0, State.QUEUED  # as it was read by somebody slow
    assert calls.retry(claim, FAILED, 20.0)

    after = calls.cancel(before, actor="agent:tester")

    assert (after.state, last_event(after).event) == (State.CANCELLED, "call.cancelled")
    assert "another attempt" in after.error


def test_attempts_that_failed_by_themselves_cost_no_worker(call: MakeCall, unsent: list[Any], ledger: Path) -> None:
    claim = claimed(call, "Flaky", ledger=str(ledger), fails=9)
    for _ in range(2):
        assert calls.retry(claim, FAILED, 0.0)
        again = calls.claim(Call.objects.get(pk=claim.id), claim.tool, "tester")
        assert again is not None
        claim = again
    expire_lease(claim.id)
    sweep()

    row = Call.objects.get(pk=claim.id)
    assert (row.state, row.fence) == (State.QUEUED, 3)
    assert list(Attempt.objects.order_by("number").values_list("status", flat=True)) == ["failed", "failed", "lost"]


def test_a_lost_attempt_is_recorded_with_its_own_beginning_and_place(
    call: MakeCall, unsent: list[Any], ledger: Path
) -> None:
    row = tried(call, ledger)
    Call.objects.filter(pk=row.pk).update(started_at=row.started_at - timedelta(minutes=1) if row.started_at else None)
    claim = calls.claim(Call.objects.get(pk=row.pk), claimed(call, "Flaky", ledger=str(ledger), fails=0).tool, "tester")
    assert claim is not None
    started = last_event(row)
    expire_lease(row.pk)
    sweep()

    lost = Attempt.objects.get(call=row, status="lost")
    assert (lost.number, lost.where, lost.started_at) == (2, claim.where, started.at)


def test_an_inline_call_hears_that_nobody_wants_it_any_more(call: MakeCall, monkeypatch: pytest.MonkeyPatch) -> None:
    def cancelled(claim: Any) -> None:
        row = calls.cancel(Call.objects.get(pk=claim.id), actor="agent:tester")
        assert (row.state, row.cancel_requested) == (State.RUNNING, True)
        bell._heard(f"cancel:{claim.id}")  # as the ring that comes with the commit

    monkeypatch.setattr("execution.pipeline.perform.enter", cancelled)
    outcome = call("Echo", value=1)

    assert outcome.state == State.CANCELLED


@pytest.mark.django_db(transaction=True)
def test_a_result_waits_until_whoever_guards_the_tables_lets_it_in(
    call: MakeCall, unsent: list[Any], ledger: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    claim = claimed(call, "Ring", ledger=str(ledger))
    move, until = moves.move, time.monotonic() + 1.0

    def guarded(*facts: Any, **how: Any) -> bool:
        if time.monotonic() < until:
            raise IntegrityError("not now")
        return move(*facts, **how)

    monkeypatch.setattr("execution.moves.move", guarded)
    outcome = calls.succeed(claim, RunResult(value=1))

    assert outcome is not None
    assert outcome.state == State.SUCCEEDED


@pytest.mark.django_db(transaction=True)
def test_tables_that_refuse_a_result_for_good_are_not_asked_for_longer_than_a_lease_lasts(
    call: MakeCall, unsent: list[Any], ledger: Path, settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    claim = claimed(call, "Ring", ledger=str(ledger))
    rests: list[float] = []

    def refused(*_: Any, **__: Any) -> bool:
        raise IntegrityError("never")

    monkeypatch.setattr("execution.moves.move", refused)
    monkeypatch.setattr("execution.insisting.time.sleep", rests.append)
    with pytest.raises(IntegrityError, match="never"):
        calls.succeed(claim, RunResult(value=1))

    assert 3 < sum(rests) < settings.PLACET_LEASE / 3


def test_an_agent_that_was_disabled_between_two_attempts_is_told_so(
    call: MakeCall, unsent: list[Any], ledger: Path
) -> None:
    row = tried(call, ledger)
    Call.objects.filter(pk=row.pk).update(not_before=None)
    agents.set_active(row.agent, False, actor="shell")
    perform(row.pk)

    row.refresh_from_db()
    message = orjson.loads(row.error)["message"]
    assert (row.state, message) == (State.DENIED, "The agent was disabled before another attempt")
