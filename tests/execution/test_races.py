"""Two of everything at the same moment: one wins, the other does nothing, and the chain has no gap."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from audit.models import Event
from audit.verification import verify
from execution import calls, losses, pulse
from execution.claim import Claim
from execution.errors import ErrorCode, Failure
from execution.models import Attempt, Call, State
from execution.pipeline.perform import perform
from execution.runtimes.base import RunResult
from execution.sweeping import sweep
from registry.clock import Later
from registry.resolution import resolve
from registry.toolref import ToolRef
from registry.toolspec import ToolSpec
from tests.execution.conftest import Call as MakeCall
from tests.execution.racing import ROUNDS, race

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def tool(lab: Any) -> ToolSpec:
    ref = ToolRef.parse("Lab.SlowButSafe")
    assert ref is not None
    found = resolve(ref)
    assert found is not None
    return found


@pytest.fixture
def queued(call: MakeCall, unsent: list[Any], tmp_path: Path) -> list[Call]:
    """As many queued calls as there are rounds."""
    made = [call("SlowButSafe", ledger=str(tmp_path / "ledger"), seconds=0).id for _ in range(ROUNDS)]
    return [Call.objects.get(pk=id) for id in made]


@pytest.fixture
def claimed(queued: list[Call], tool: ToolSpec) -> list[Claim]:
    found = [calls.claim(row, tool, "tester") for row in queued]
    return [claim for claim in found if claim is not None]


def events(id: Any) -> list[str]:
    found = Event.objects.filter(subject_kind="call", subject_id=str(id)).order_by("seq").values_list("seq", "event")
    assert [seq for seq, _ in found] == list(range(1, len(found) + 1))
    return [event for _, event in found]


def expire(claims: list[Claim]) -> None:
    Call.objects.filter(pk__in=[claim.id for claim in claims]).update(lease_until=Later(-1))


def test_of_many_claims_one_wins(queued: list[Call], tool: ToolSpec) -> None:
    results = race(*[lambda number: calls.claim(queued[number], tool, "tester")] * 4)
    for row, claims in zip(queued, results, strict=True):
        assert [claim.fence for claim in claims if claim is not None] == [1]
        assert events(row.pk).count("call.started") == 1


def test_a_cancellation_and_a_claim_agree(queued: list[Call], tool: ToolSpec) -> None:
    results = race(
        lambda number: calls.claim(queued[number], tool, "tester"),
        lambda number: calls.cancel(queued[number], actor="agent:tester"),
    )
    for row, (claim, _) in zip(queued, results, strict=True):
        row.refresh_from_db()
        if claim is None:
            assert (row.state, events(row.pk)[-1]) == (State.CANCELLED, "call.cancelled")
        else:
            assert (row.state, row.cancel_requested) == (State.RUNNING, True)
            assert events(row.pk)[-2:] == ["call.started", "call.cancel_requested"]


def test_a_cancellation_is_not_lost_between_two_attempts(claimed: list[Claim]) -> None:
    failure = Failure(code=ErrorCode.EXECUTION_FAILED, message="Not yet", can_retry=True)
    rows = [Call.objects.get(pk=claim.id) for claim in claimed]
    race(
        lambda number: calls.retry(claimed[number], failure, 0.0),
        lambda number: calls.cancel(rows[number], actor="agent:tester"),
    )
    for claim in claimed:
        perform(claim.id)  # as the message of the retry does
        assert Call.objects.get(pk=claim.id).state == State.CANCELLED
        assert "call.started" not in events(claim.id)[4:]


def test_a_result_and_the_sweeper_agree(claimed: list[Claim]) -> None:
    expire(claimed)
    rows = [Call.objects.get(pk=claim.id) for claim in claimed]
    results = race(
        lambda number: calls.succeed(claimed[number], RunResult(value="done")),
        lambda number: losses.requeue(rows[number]),
    )
    for claim, (_, was_lost) in zip(claimed, results, strict=True):
        row = Call.objects.get(pk=claim.id)
        (attempt,) = Attempt.objects.filter(call_id=claim.id)
        if was_lost:
            assert (row.state, attempt.status) == (State.QUEUED, "lost")
            assert events(claim.id)[-2:] == ["call.requeued", "call.stale_write"]
        else:
            assert (row.state, attempt.status) == (State.SUCCEEDED, "succeeded")
            assert events(claim.id)[-1] == "call.succeeded"


def test_a_heartbeat_and_a_takeover_agree(claimed: list[Claim]) -> None:
    expire(claimed)
    rows = [Call.objects.get(pk=claim.id) for claim in claimed]
    results = race(lambda number: pulse._beat(claimed[number]), lambda number: losses.requeue(rows[number]))
    for claim, (_, was_lost) in zip(claimed, results, strict=True):
        row = Call.objects.get(pk=claim.id)
        assert was_lost == (row.state == State.QUEUED) == (row.lease_until is None)
        assert claim.cancel.is_set() == was_lost


def test_a_late_result_does_not_disturb_the_next_attempt(claimed: list[Claim], tool: ToolSpec) -> None:
    """Both write on the call's chain."""
    expire(claimed)
    sweep()
    rows = [Call.objects.get(pk=claim.id) for claim in claimed]
    results = race(
        lambda number: calls.succeed(claimed[number], RunResult(value="late")),
        lambda number: calls.claim(rows[number], tool, "tester"),
    )
    for claim, (_, second) in zip(claimed, results, strict=True):
        assert second.fence == 2
        calls.succeed(second, RunResult(value="done"))
        assert Call.objects.get(pk=claim.id).result == '"done"'
        assert sorted(events(claim.id)[5:]) == ["call.stale_write", "call.started", "call.succeeded"]
    assert verify().is_intact


def test_a_late_result_does_not_disturb_a_cancellation(claimed: list[Claim]) -> None:
    expire(claimed)
    sweep()
    rows = [Call.objects.get(pk=claim.id) for claim in claimed]
    race(
        lambda number: calls.succeed(claimed[number], RunResult(value="late")),
        lambda number: calls.cancel(rows[number], actor="agent:tester"),
    )
    for claim in claimed:
        assert Call.objects.get(pk=claim.id).state == State.CANCELLED
        assert sorted(events(claim.id)[5:]) == ["call.cancelled", "call.stale_write"]


def test_one_call_id_sent_many_times_at_once_is_one_call(call: MakeCall, tmp_path: Path) -> None:
    def ask(number: int) -> Any:
        outcome = call("RingInline", wait=30, call_id=f"same-{number}", ledger=str(tmp_path / f"ledger-{number}"))
        return outcome.id, outcome.state, outcome.value

    results = race(*[ask] * 16)
    for number, answers in enumerate(results):
        assert len(set(answers)) == 1
        assert answers[0][1:] == (State.SUCCEEDED, 1)
        assert len((tmp_path / f"ledger-{number}").read_text().splitlines()) == 1
    assert Call.objects.count() == ROUNDS
    assert verify().is_intact
