"""The life of a call as a machine: whatever happens in whatever order, its states, fences and events stay honest."""

from __future__ import annotations

from collections import defaultdict
from typing import Any, NamedTuple

import pytest
from django.db import transaction
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    Bundle,
    RuleBasedStateMachine,
    invariant,
    multiple,
    precondition,
    rule,
    run_state_machine_as_test,
)

from audit.models import Event
from audit.verification import verify
from execution import calls, losses
from execution.claim import Claim
from execution.errors import ErrorCode, Failure
from execution.models import Attempt, Call, State
from execution.outcomes import outcome_of
from execution.pipeline.perform import perform
from execution.recovery import MAX_LOST
from execution.runtimes.base import RunResult
from execution.sweeping import sweep
from registry.clock import Later
from registry.resolution import resolve
from registry.toolref import ToolRef
from tests.execution.conftest import Call as MakeCall

pytestmark = pytest.mark.django_db

MOST_CALLS = 3  # few, so that much happens to each
TOOLS = ("Slow", "SlowButSafe", "Flaky")
MOVES: dict[str, dict[str, str]] = {  # which event may follow a state, and the state it leads to
    "call.queued": {"": State.QUEUED},
    "call.started": {State.QUEUED: State.RUNNING},
    "call.cancelled": {State.QUEUED: State.CANCELLED, State.RUNNING: State.CANCELLED},
    "call.expired": {State.QUEUED: State.EXPIRED},
    "call.succeeded": {State.RUNNING: State.SUCCEEDED},
    "call.failed": {State.RUNNING: State.FAILED},
    "call.timed_out": {State.RUNNING: State.TIMED_OUT},
    "call.retry_scheduled": {State.RUNNING: State.QUEUED},
    "call.requeued": {State.RUNNING: State.QUEUED},
    "call.unknown": {State.RUNNING: State.UNKNOWN},
    "call.settled": {State.UNKNOWN: State.SUCCEEDED},
}
UNMOVING = {"call.received", "call.decided", "call.cancel_requested", "call.stale_write"}


class Snapshot(NamedTuple):
    """What a caller of an ended call was told."""

    state: str
    result: str
    error: str


class Lifecycle(RuleBasedStateMachine):
    """One agent, a few calls, two workers of which one may be late, a sweeper, and a person."""

    make: MakeCall

    submitted = Bundle("submitted")
    claims = Bundle("claims")

    def __init__(self) -> None:
        super().__init__()
        self.requests: dict[Any, tuple[str, str]] = {}
        self.fences: dict[Any, list[int]] = {}
        self.ended: dict[Any, Snapshot] = {}
        self._undo = transaction.atomic()
        self._undo.__enter__()

    def teardown(self) -> None:
        assert verify().is_intact
        transaction.set_rollback(True)
        self._undo.__exit__(None, None, None)

    @precondition(lambda self: len(self.requests) < MOST_CALLS)
    @rule(target=submitted, tool=st.sampled_from(TOOLS))
    def submit(self, tool: str) -> Any:
        call_id = f"call-{len(self.requests)}"
        arguments = {"fails": 9} if tool == "Flaky" else {"seconds": 0}
        outcome = self.make(tool, call_id=call_id, ledger="/nowhere", **arguments)
        assert outcome.state == State.QUEUED
        self.requests[outcome.id] = (tool, call_id)
        self.fences[outcome.id] = []
        return outcome.id

    @rule(id=submitted)
    def repeat(self, id: Any) -> None:
        """The same request again is the same call, as it stands."""
        tool, call_id = self.requests[id]
        arguments = {"fails": 9} if tool == "Flaky" else {"seconds": 0}
        again = self.make(tool, call_id=call_id, ledger="/nowhere", **arguments)
        assert again == outcome_of(Call.objects.get(pk=id))

    @rule(id=submitted)
    def reuse_the_id(self, id: Any) -> None:
        before = Call.objects.get(pk=id)
        other = self.make("Fail", call_id=self.requests[id][1], message="other")
        assert other.failure is not None
        assert other.failure.code is ErrorCode.CALL_ID_REUSED
        assert Call.objects.get(pk=id).state == before.state

    @rule(target=claims, id=submitted)
    def claim(self, id: Any) -> Any:
        row = Call.objects.get(pk=id)
        ref = ToolRef.parse(row.tool_ref)
        tool = resolve(ref) if ref else None
        assert tool is not None
        claim = calls.claim(row, tool, "tester")
        assert (claim is not None) == (row.state == State.QUEUED and not row.cancel_requested and not self._is_late(id))
        if claim is None:
            return multiple()
        self.fences[id].append(claim.fence)
        return claim

    @rule(id=submitted)
    def cancel(self, id: Any) -> None:
        before = Call.objects.get(pk=id)
        after = calls.cancel(before, actor="agent:tester")
        if before.state == State.QUEUED:
            assert after.state == State.CANCELLED
        elif before.state == State.RUNNING:
            assert (after.state, after.cancel_requested) == (State.RUNNING, True)
        else:
            assert after.state == before.state

    @rule(id=submitted)
    def a_message_comes(self, id: Any) -> None:
        """Only where it would not run the tool: that is what claims are for here."""
        row = Call.objects.get(pk=id)
        if row.state != State.QUEUED or row.cancel_requested:
            perform(id)
            now = Call.objects.get(pk=id).state
            assert now == (State.CANCELLED if row.state == State.QUEUED else row.state)

    @precondition(lambda self: self._any(State.RUNNING))
    @rule()
    def a_worker_is_lost(self) -> None:
        row = Call.objects.filter(state=State.RUNNING).earliest("id")
        Call.objects.filter(pk=row.pk).update(lease_until=Later(-1))
        self.sweep()

    @precondition(lambda self: self._any(State.QUEUED))
    @rule()
    def nobody_takes_it_in_time(self) -> None:
        row = Call.objects.filter(state=State.QUEUED).latest("id")
        Call.objects.filter(pk=row.pk).update(deadline=Later(-1))

    @rule()
    def sweep(self) -> None:
        before = {row.pk: row for row in Call.objects.all()}
        late = set(Call.objects.filter(lease_until__lt=Later(0)).values_list("pk", flat=True))
        sweep()
        for id in late:
            now = Call.objects.get(pk=id).state
            if self.requests[id][0] == "Slow":
                assert now == State.UNKNOWN
            else:
                assert now == (State.FAILED if before[id].fence >= MAX_LOST else State.QUEUED)

    @rule(claim=claims)
    def succeed(self, claim: Claim) -> None:
        held = self._holds(claim)
        calls.succeed(claim, RunResult(value=claim.fence))
        self._after_writing(claim, held, State.SUCCEEDED)

    @rule(claim=claims, code=st.sampled_from([ErrorCode.EXECUTION_FAILED, ErrorCode.TIMEOUT, ErrorCode.CANCELED]))
    def fail(self, claim: Claim, code: ErrorCode) -> None:
        ends = {ErrorCode.TIMEOUT: State.TIMED_OUT, ErrorCode.CANCELED: State.CANCELLED}
        held = self._holds(claim)
        calls.fail(claim, Failure(code=code, message="No"))
        self._after_writing(claim, held, ends.get(code, State.FAILED))

    @rule(claim=claims)
    def retry(self, claim: Claim) -> None:
        held = self._holds(claim)
        calls.retry(claim, Failure(code=ErrorCode.EXECUTION_FAILED, message="No", can_retry=True), 0.0)
        self._after_writing(claim, held, State.QUEUED)

    @precondition(lambda self: self._any(State.UNKNOWN))
    @rule()
    def settle(self) -> None:
        row = Call.objects.filter(state=State.UNKNOWN).earliest("id")
        self.ended.pop(row.pk, None)
        assert losses.settle(row, actor="user:author", succeeded=True, reason="Seen in the ledger")
        assert not losses.settle(row, actor="user:author", succeeded=True, reason="Twice")

    def _any(self, state: State) -> bool:
        return Call.objects.filter(state=state).exists()

    def _is_late(self, id: Any) -> bool:
        return Call.objects.filter(pk=id, deadline__lte=Later(0)).exists()

    def _holds(self, claim: Claim) -> bool:
        return Call.objects.filter(pk=claim.id, state=State.RUNNING, fence=claim.fence).exists()

    def _after_writing(self, claim: Claim, held: bool, state: str) -> None:
        if held:
            assert Call.objects.get(pk=claim.id).state == state
        elif not Attempt.objects.filter(call_id=claim.id, number=claim.fence).exclude(status="lost").exists():
            last = Event.objects.filter(subject_kind="call", subject_id=str(claim.id)).latest("seq")
            assert last.event == "call.stale_write"

    @invariant()
    def all_is_as_it_must_be(self) -> None:
        rows = list(Call.objects.all())
        assert {row.pk for row in rows} == set(self.requests)
        events: dict[str, list[Event]] = defaultdict(list)
        for event in Event.objects.filter(subject_kind="call").order_by("seq"):
            events[event.subject_id].append(event)
        numbers: dict[Any, list[int]] = defaultdict(list)
        for attempt in Attempt.objects.order_by("number"):
            numbers[attempt.call_id].append(attempt.number)
        for row in rows:
            self._an_end_is_for_ever(row)
            self._fences_only_grow_and_one_lease_lives(row, numbers[row.pk])
            self._its_state_is_what_its_events_say(row, events[str(row.pk)])

    def _an_end_is_for_ever(self, row: Call) -> None:
        if not row.is_open:
            told = Snapshot(row.state, row.result, row.error)
            assert self.ended.setdefault(row.pk, told) == told
            assert row.sealed is None
            assert row.finished_at is not None

    def _fences_only_grow_and_one_lease_lives(self, row: Call, numbers: list[int]) -> None:
        seen = self.fences[row.pk]
        assert seen == list(range(1, row.fence + 1))
        assert (row.lease_until is not None) == (row.state == State.RUNNING)
        assert numbers == seen[: row.fence - (row.state == State.RUNNING)]

    def _its_state_is_what_its_events_say(self, row: Call, events: list[Event]) -> None:
        state = ""
        assert [event.seq for event in events] == list(range(1, len(events) + 1))
        for event in events:
            if event.event not in UNMOVING:
                state = MOVES[event.event][state]
        assert state == row.state
        if self.requests[row.pk][0] == "Slow":  # it may not run twice, except that we ourselves asked for a retry
            retried = sum(event.event == "call.retry_scheduled" for event in events)
            assert row.fence <= 1 + retried


@pytest.fixture
def machine(call: MakeCall, unsent: list[Any]) -> type[Lifecycle]:
    class Ready(Lifecycle):
        make = staticmethod(call)

    return Ready


def test_a_call_lives_by_the_rules_whatever_happens(machine: type[Lifecycle]) -> None:
    run_state_machine_as_test(
        machine,
        settings=settings(
            max_examples=25,
            stateful_step_count=30,
            derandomize=True,
            deadline=None,
            database=None,
            phases=[Phase.generate],
            suppress_health_check=list(HealthCheck),
        ),
    )
