"""A call is judged, then taken: what changes between the two counts, as if it had been there before the look."""

from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.utils import timezone
from guardian.shortcuts import assign_perm, remove_perm

from execution import calls
from execution.errors import ErrorCode, Failure
from execution.models import Attempt, Call, State
from execution.pipeline.perform import perform
from policy import approvals, grants, revisions
from policy.approvals import ApprovalError
from policy.models import Approval, Grant
from registry.models import Toolkit, ToolkitVersion
from registry.publishing import withdraw
from tests.execution.approving import approver, asked, call_state, events, lines, move_clock
from tests.execution.conftest import Call as MakeCall

pytestmark = pytest.mark.django_db

Meanwhile = Callable[[Callable[[], object]], None]


@pytest.fixture
def ana(lab: ToolkitVersion) -> User:
    return approver("ana", lab.toolkit)


@pytest.fixture
def ledger(tmp_path: Path) -> Path:
    return tmp_path / "ledger"


@pytest.fixture
def meanwhile(monkeypatch: pytest.MonkeyPatch) -> Meanwhile:
    """Let something happen after the next call was judged and before it is taken."""
    waiting: list[Callable[[], object]] = []
    claim = calls.claim

    def late(*arguments: Any, **named: Any) -> Any:
        while waiting:
            waiting.pop()()
        return claim(*arguments, **named)

    monkeypatch.setattr(calls, "claim", late)
    return waiting.append


def queued(call: MakeCall, how: str, ledger: Path, ana: User) -> Any:
    """A call that a worker could take now: allowed by policy, by an approval, or by a grant."""
    if how == "allowed":
        return call("Ring", ledger=str(ledger))
    outcome = call("Fire", ledger=str(ledger))
    if how == "approved":
        approvals.decide(asked(outcome).pk, by=ana, answer="approve")
        return outcome
    until = timezone.now() + timedelta(hours=1)
    grants.give(asked(outcome), by=ana, uses=1, until=until, reason="a batch")
    return call("Fire", ledger=str(ledger))


@pytest.mark.parametrize("how", ["allowed", "approved", "granted"])
def test_no_call_is_taken_once_its_version_is_withdrawn(
    call: MakeCall,
    unsent: list[Any],
    ledger: Path,
    ana: User,
    lab: ToolkitVersion,
    people: dict[str, User],
    meanwhile: Meanwhile,
    how: str,
) -> None:
    """I19: not even by a worker that judged it just before."""
    outcome = queued(call, how, ledger, ana)
    assert call_state(outcome.id) == State.QUEUED
    meanwhile(lambda: withdraw(lab, by=people["author"], reason="broken"))
    perform(outcome.id)
    assert (lines(ledger), call_state(outcome.id)) == (0, State.DENIED)
    if how == "approved":
        assert asked(outcome).state == Approval.State.WITHDRAWN


def test_no_call_is_taken_on_an_approval_once_another_policy_is_live(
    call: MakeCall, unsent: list[Any], ledger: Path, ana: User, meanwhile: Meanwhile
) -> None:
    """I14: the policy's revision is part of what was approved."""
    outcome = queued(call, "approved", ledger, ana)
    meanwhile(lambda: revisions.activate(revisions.new_draft(by=None), by=None))
    perform(outcome.id)
    assert (lines(ledger), asked(outcome).state) == (0, Approval.State.WITHDRAWN)
    assert call_state(outcome.id) == State.DENIED


def test_no_call_is_taken_on_a_grant_once_it_is_revoked(
    call: MakeCall, unsent: list[Any], ledger: Path, ana: User, meanwhile: Meanwhile
) -> None:
    outcome = queued(call, "granted", ledger, ana)
    meanwhile(lambda: grants.revoke(Grant.objects.get(), by=ana, reason="enough"))
    perform(outcome.id)
    assert (lines(ledger), call_state(outcome.id)) == (0, State.DENIED)


def test_an_approver_who_loses_the_right_at_the_last_moment_no_longer_counts(
    call: MakeCall, unsent: list[Any], ledger: Path, ana: User, lab: ToolkitVersion, meanwhile: Meanwhile
) -> None:
    """I18: looked at in the transaction of the claim."""
    outcome = queued(call, "approved", ledger, ana)
    meanwhile(lambda: remove_perm("registry.approve_toolkit", ana, Toolkit.objects.get(pk=lab.toolkit_id)))
    perform(outcome.id)
    assert (lines(ledger), asked(outcome).state) == (0, Approval.State.PENDING)
    assert call_state(outcome.id) == State.AWAITING_APPROVAL


def test_a_change_that_does_not_matter_costs_another_look_and_nothing_else(
    call: MakeCall, unsent: list[Any], ledger: Path, ana: User, lab: ToolkitVersion, meanwhile: Meanwhile
) -> None:
    outcome = queued(call, "approved", ledger, ana)
    stranger = User.objects.create_user("stranger")
    meanwhile(lambda: assign_perm("registry.view_toolkit", stranger, Toolkit.objects.get(pk=lab.toolkit_id)))
    perform(outcome.id)
    assert (lines(ledger), call_state(outcome.id)) == (1, State.SUCCEEDED)
    assert Attempt.objects.filter(call=outcome.id).count() == 1
    assert events("approval", asked(outcome).pk).count("approval.consumed") == 1


def test_another_attempt_under_another_policy_is_refused_at_once(
    call: MakeCall, unsent: list[Any], ledger: Path, ana: User
) -> None:
    """I13, I14: attempts share an approval only while all that it is bound to stays the same."""
    outcome = call("FireAgain", ledger=str(ledger), fails=2)
    approvals.decide(asked(outcome).pk, by=ana, answer="approve")
    perform(outcome.id)
    assert (lines(ledger), call_state(outcome.id)) == (1, State.QUEUED)
    revisions.activate(revisions.new_draft(by=None), by=None)
    Call.objects.filter(pk=outcome.id).update(not_before=None)
    perform(outcome.id)
    assert (lines(ledger), call_state(outcome.id)) == (1, State.DENIED)
    assert asked(outcome).state == Approval.State.CONSUMED
    told = call("FireAgain", call_id=outcome.call_id, ledger=str(ledger), fails=2)
    assert told.failure is not None
    assert told.failure.code is ErrorCode.APPROVAL_DENIED


def test_a_call_that_was_parked_again_while_a_worker_judged_it_still_ends(
    call: MakeCall, unsent: list[Any], ledger: Path, ana: User, lab: ToolkitVersion
) -> None:
    """The slower worker's denial takes the question and the call along, wherever the faster one has put them."""
    outcome = queued(call, "approved", ledger, ana)
    seen = Call.objects.get(pk=outcome.id)
    remove_perm("registry.approve_toolkit", ana, Toolkit.objects.get(pk=lab.toolkit_id))
    perform(outcome.id)
    assert call_state(outcome.id) == State.AWAITING_APPROVAL
    calls.deny_asked(seen, asked(outcome).pk, Failure(code=ErrorCode.PERMISSION_DENIED, message="The agent is gone"))
    assert (asked(outcome).state, call_state(outcome.id)) == (Approval.State.WITHDRAWN, State.DENIED)


def test_who_comes_late_hears_of_who_decided_and_of_nobody_where_nobody_did(
    call: MakeCall, unsent: list[Any], ledger: Path, ana: User, lab: ToolkitVersion
) -> None:
    """I17: the later answer is told the winning one; who only voted has not ended the call."""
    ben = approver("ben", lab.toolkit)
    decided, cancelled = call("Fire", ledger=str(ledger)), call("Detonate", ledger=str(ledger))
    approvals.decide(asked(decided).pk, by=ana, answer="approve")
    perform(decided.id)
    with pytest.raises(ApprovalError, match="approved by ana"):
        approvals.decide(asked(decided).pk, by=ben, answer="deny", reason="no")
    approvals.decide(asked(cancelled).pk, by=ana, answer="approve")
    calls.cancel(Call.objects.get(pk=cancelled.id), actor="agent:tester")
    with pytest.raises(ApprovalError) as refused:
        approvals.decide(asked(cancelled).pk, by=ben, answer="approve")
    assert "ana" not in refused.value.message


def test_the_clock_is_read_once_more_in_the_statement_that_moves_the_approval(
    call: MakeCall, unsent: list[Any], ledger: Path, ana: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    """I16: the time may run out between a look at the clock and the move; the move itself does not believe the look."""
    late, unused = call("Fire", ledger=str(ledger)), queued(call, "approved", ledger, ana)
    move_clock(asked(late), decide_by=-0.5)
    move_clock(asked(unused), run_by=-0.5)
    monkeypatch.setattr(approvals, "_is_in_time", lambda approval, **clock: True)
    for answer in ("approve", "deny"):
        with pytest.raises(ApprovalError) as refused:
            approvals.decide(asked(late).pk, by=ana, answer=answer, reason="because")
        assert (refused.value.status, refused.value.code) == (410, "expired")
    assert (asked(late).state, asked(late).votes.count()) == (Approval.State.PENDING, 0)
    perform(unused.id)
    assert (lines(ledger), asked(unused).state) == (0, Approval.State.APPROVED)
    assert "approval.consumed" not in events("approval", asked(unused).pk)


def test_a_denial_before_the_threshold_ends_the_question_for_all(
    call: MakeCall, unsent: list[Any], ledger: Path, ana: User, lab: ToolkitVersion
) -> None:
    """I17: one yes and one no are a tie, and a tie is a no; the yes that would have been enough comes too late."""
    ben, eva = approver("ben", lab.toolkit), approver("eva", lab.toolkit)
    outcome = call("Detonate", ledger=str(ledger))
    approvals.decide(asked(outcome).pk, by=ana, answer="approve")
    approvals.decide(asked(outcome).pk, by=ben, answer="deny", reason="not today")
    with pytest.raises(ApprovalError, match="denied by ben") as refused:
        approvals.decide(asked(outcome).pk, by=eva, answer="approve")
    assert (refused.value.status, refused.value.code) == (409, "already_decided")
    assert (asked(outcome).state, call_state(outcome.id)) == (Approval.State.DENIED, State.DENIED)
