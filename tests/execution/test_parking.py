"""Calls that need a person: parked, decided, used once, and never run on an answer that no longer counts."""

from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth.models import User
from guardian.shortcuts import assign_perm, remove_perm

from execution import calls
from execution.errors import ErrorCode
from execution.messages import CallContext
from execution.models import Attempt, Call, State
from execution.pipeline.perform import perform
from execution.sweeping import sweep
from policy import agents, approvals, revisions
from policy.approvals import ApprovalError
from policy.caller import Caller
from policy.models import Agent, Approval
from registry.models import Toolkit, ToolkitVersion
from registry.publishing import withdraw
from tests.execution.approving import approver, asked, call_state, events, lines, move_clock
from tests.execution.conftest import Call as MakeCall

pytestmark = pytest.mark.django_db


def test_a_call_that_needs_a_person_waits_and_says_where(call: MakeCall, unsent: list[Any], ledger: Path) -> None:
    outcome = call("Fire", call_id="one", ledger=str(ledger))
    assert outcome.state == State.AWAITING_APPROVAL
    failure = outcome.failure
    assert failure is not None
    assert failure.code is ErrorCode.APPROVAL_PENDING
    approval = asked(outcome)
    (where,) = failure.missing_requirements["authorization"]
    assert where["id"] == "approval"
    assert where["url"].endswith(f"/approvals/{approval.pk}/")
    assert where["check_url"].endswith(f"/api/calls/{outcome.id}/")
    assert (approval.state, approval.quorum, approval.rule) == ("pending", 1, "default")
    assert events("call", outcome.id) == ["call.received", "call.decided", "call.awaiting_approval"]
    assert events("approval", approval.pk) == ["approval.asked"]
    again = call("Fire", call_id="one", ledger=str(ledger))
    assert (again.id, again.state) == (outcome.id, State.AWAITING_APPROVAL)
    assert Approval.objects.count() == 1
    assert unsent == []
    perform(outcome.id)  # a forged message
    assert lines(ledger) == 0


def test_an_approved_call_runs_once_and_uses_its_approval_up(
    call: MakeCall, unsent: list[Any], ledger: Path, ana: User
) -> None:
    outcome = call("Fire", call_id="one", ledger=str(ledger))
    approval = approvals.decide(asked(outcome).pk, by=ana, answer="approve", reason="looks right")
    assert approval.state == Approval.State.APPROVED
    assert call_state(outcome.id) == State.QUEUED
    for _ in range(3):
        perform(outcome.id)
    assert lines(ledger) == 1
    assert call("Fire", call_id="one", ledger=str(ledger)).value == 1
    approval.refresh_from_db()
    assert approval.state == Approval.State.CONSUMED
    assert approval.sealed_arguments is None
    assert events("call", outcome.id)[2:] == [
        "call.awaiting_approval",
        "call.approved",
        "call.started",
        "call.succeeded",
    ]
    assert events("approval", approval.pk) == [
        "approval.asked",
        "approval.voted",
        "approval.approved",
        "approval.consumed",
    ]


def test_a_decision_wakes_a_worker_once_it_is_committed(
    call: MakeCall, unsent: list[Any], ledger: Path, ana: User, django_capture_on_commit_callbacks: Any
) -> None:
    outcome = call("Fire", ledger=str(ledger))
    with django_capture_on_commit_callbacks(execute=True):
        approvals.decide(asked(outcome).pk, by=ana, answer="approve")
    assert unsent == [outcome.id]


def test_a_denied_call_never_runs_and_its_caller_hears_why(
    call: MakeCall, unsent: list[Any], ledger: Path, ana: User
) -> None:
    outcome = call("Fire", call_id="one", ledger=str(ledger))
    with pytest.raises(ApprovalError, match="says why"):
        approvals.decide(asked(outcome).pk, by=ana, answer="deny", reason="  ")
    approvals.decide(asked(outcome).pk, by=ana, answer="deny", reason="not on a Friday")
    told = call("Fire", call_id="one", ledger=str(ledger))
    assert told.state == State.DENIED
    assert told.failure is not None
    assert told.failure.code is ErrorCode.APPROVAL_DENIED
    assert "not on a Friday" in told.failure.message
    perform(outcome.id)
    assert lines(ledger) == 0
    assert Call.objects.get(pk=outcome.id).sealed is None


def test_a_critical_call_needs_two_different_people(
    call: MakeCall, unsent: list[Any], ledger: Path, ana: User, ben: User
) -> None:
    outcome = call("Detonate", ledger=str(ledger))
    approval = asked(outcome)
    assert approval.quorum == 2
    assert approvals.decide(approval.pk, by=ana, answer="approve").state == Approval.State.PENDING
    with pytest.raises(ApprovalError) as refused:
        approvals.decide(approval.pk, by=ana, answer="approve")
    assert (refused.value.status, refused.value.code) == (409, "already_voted")
    perform(outcome.id)
    assert lines(ledger) == 0
    assert approvals.decide(approval.pk, by=ben, answer="approve").state == Approval.State.APPROVED
    perform(outcome.id)
    assert lines(ledger) == 1


def test_one_denial_outweighs_an_approval(
    call: MakeCall, unsent: list[Any], ledger: Path, ana: User, ben: User
) -> None:
    outcome = call("Detonate", ledger=str(ledger))
    approvals.decide(asked(outcome).pk, by=ana, answer="approve")
    approvals.decide(asked(outcome).pk, by=ben, answer="deny", reason="no")
    assert call_state(outcome.id) == State.DENIED


def test_nobody_approves_what_they_gain_from(
    call: MakeCall, unsent: list[Any], ledger: Path, lab: ToolkitVersion, caller: Caller, people: dict[str, User]
) -> None:
    owner, twin = approver("owner", lab.toolkit), approver("twin", lab.toolkit, email="OWNER@placet.invalid")
    agent = Agent.objects.get(pk=caller.agent_id)
    Agent.objects.filter(pk=agent.pk).update(owner=owner)
    assign_perm("registry.approve_toolkit", people["author"], lab.toolkit)
    assign_perm("registry.approve_toolkit", agent.user, lab.toolkit)
    behalf = approver("carla", lab.toolkit)
    outcome = call("Fire", ledger=str(ledger), context=CallContext(user_id="carla"))
    for person, code in (
        (owner, "self_approval"),
        (twin, "self_approval"),
        (people["author"], "self_approval"),
        (behalf, "self_approval"),
        (agent.user, "not_a_person"),
    ):
        with pytest.raises(ApprovalError) as refused:
            approvals.decide(asked(outcome).pk, by=person, answer="approve")
        assert (refused.value.status, refused.value.code) == (403, code), person
        assert not approvals.to_decide(person).exists()
    assert asked(outcome).votes.count() == 0


def test_the_permission_on_the_toolkit_decides_not_one_on_all_of_them(
    call: MakeCall, unsent: list[Any], ledger: Path
) -> None:
    outcome = call("Fire", ledger=str(ledger))
    stranger = User.objects.create_user("stranger", is_staff=True)
    assign_perm("registry.approve_toolkit", stranger)
    with pytest.raises(ApprovalError) as refused:
        approvals.decide(asked(outcome).pk, by=User.objects.get(pk=stranger.pk), answer="approve")
    assert (refused.value.status, refused.value.code) == (403, "not_an_approver")
    assert not approvals.visible_to(stranger).exists()


def test_a_disabled_approver_decides_nothing(call: MakeCall, unsent: list[Any], ledger: Path, ana: User) -> None:
    outcome = call("Fire", ledger=str(ledger))
    User.objects.filter(pk=ana.pk).update(is_active=False)
    ana.refresh_from_db()
    with pytest.raises(ApprovalError):
        approvals.decide(asked(outcome).pk, by=ana, answer="approve")


def test_after_its_time_nobody_decides_and_the_caller_hears_so(
    call: MakeCall, unsent: list[Any], ledger: Path, ana: User
) -> None:
    outcome = call("Fire", call_id="one", ledger=str(ledger))
    move_clock(asked(outcome), decide_by=-1)
    assert not approvals.to_decide(ana).exists()
    with pytest.raises(ApprovalError) as refused:
        approvals.decide(asked(outcome).pk, by=ana, answer="approve")
    assert (refused.value.status, refused.value.code) == (410, "expired")
    assert asked(outcome).votes.count() == 0
    sweep()
    assert asked(outcome).state == Approval.State.EXPIRED
    told = call("Fire", call_id="one", ledger=str(ledger))
    assert told.state == State.EXPIRED
    assert told.failure is not None
    assert told.failure.code is ErrorCode.APPROVAL_TIMEOUT
    with pytest.raises(ApprovalError) as late:
        approvals.decide(asked(outcome).pk, by=ana, answer="approve")
    assert late.value.status == 410


def test_an_approval_that_was_not_used_in_time_lapses(
    call: MakeCall, unsent: list[Any], ledger: Path, ana: User
) -> None:
    outcome = call("Fire", ledger=str(ledger))
    approvals.decide(asked(outcome).pk, by=ana, answer="approve")
    move_clock(asked(outcome), run_by=-1)
    perform(outcome.id)
    assert lines(ledger) == 0
    assert asked(outcome).state == Approval.State.LAPSED
    assert call_state(outcome.id) == State.EXPIRED


def test_the_sweeper_lapses_what_no_worker_came_for(call: MakeCall, unsent: list[Any], ledger: Path, ana: User) -> None:
    outcome = call("Fire", ledger=str(ledger))
    approvals.decide(asked(outcome).pk, by=ana, answer="approve")
    move_clock(asked(outcome), run_by=-1)
    sweep()
    assert (asked(outcome).state, call_state(outcome.id)) == (Approval.State.LAPSED, State.EXPIRED)


@pytest.mark.parametrize("answer", ["approve", "deny"])
def test_a_second_answer_comes_too_late(
    call: MakeCall, unsent: list[Any], ledger: Path, ana: User, ben: User, answer: str
) -> None:
    outcome = call("Fire", ledger=str(ledger))
    approvals.decide(asked(outcome).pk, by=ana, answer=answer, reason="first")
    with pytest.raises(ApprovalError) as refused:
        approvals.decide(asked(outcome).pk, by=ben, answer="approve")
    assert (refused.value.status, refused.value.code) == (409, "already_decided")
    assert "ana" in refused.value.message


def test_an_answer_under_another_policy_does_not_count(
    call: MakeCall, unsent: list[Any], ledger: Path, ana: User
) -> None:
    outcome = call("Fire", ledger=str(ledger))
    approvals.decide(asked(outcome).pk, by=ana, answer="approve")
    revisions.activate(revisions.new_draft(by=None), by=None)
    perform(outcome.id)
    assert lines(ledger) == 0
    assert asked(outcome).state == Approval.State.WITHDRAWN
    assert call_state(outcome.id) == State.DENIED


def test_nobody_is_let_answer_a_question_that_has_changed(
    call: MakeCall, unsent: list[Any], ledger: Path, ana: User
) -> None:
    outcome = call("Fire", ledger=str(ledger))
    revisions.activate(revisions.new_draft(by=None), by=None)
    with pytest.raises(ApprovalError) as refused:
        approvals.decide(asked(outcome).pk, by=ana, answer="approve")
    assert (refused.value.status, refused.value.code) == (409, "withdrawn")
    assert call_state(outcome.id) == State.DENIED


def test_an_approver_who_lost_the_right_opens_the_question_again(
    call: MakeCall, unsent: list[Any], ledger: Path, ana: User, ben: User, lab: ToolkitVersion
) -> None:
    outcome = call("Fire", ledger=str(ledger))
    approvals.decide(asked(outcome).pk, by=ana, answer="approve")
    remove_perm("registry.approve_toolkit", ana, Toolkit.objects.get(pk=lab.toolkit_id))
    perform(outcome.id)
    assert lines(ledger) == 0
    assert asked(outcome).state == Approval.State.PENDING
    assert call_state(outcome.id) == State.AWAITING_APPROVAL
    approvals.decide(asked(outcome).pk, by=ben, answer="approve")
    perform(outcome.id)
    assert lines(ledger) == 1


def test_a_withdrawn_version_takes_its_approvals_along(
    call: MakeCall, unsent: list[Any], ledger: Path, ana: User, lab: ToolkitVersion, people: dict[str, User]
) -> None:
    outcome = call("Fire", ledger=str(ledger))
    approvals.decide(asked(outcome).pk, by=ana, answer="approve")
    withdraw(lab, by=people["author"], reason="broken")
    perform(outcome.id)
    assert lines(ledger) == 0
    assert (asked(outcome).state, call_state(outcome.id)) == (Approval.State.WITHDRAWN, State.DENIED)


def test_a_disabled_agents_approved_call_does_not_run(
    call: MakeCall, unsent: list[Any], ledger: Path, ana: User, caller: Caller
) -> None:
    outcome = call("Fire", ledger=str(ledger))
    approvals.decide(asked(outcome).pk, by=ana, answer="approve")
    agents.set_active(Agent.objects.get(pk=caller.agent_id), False, actor="shell")
    perform(outcome.id)
    assert lines(ledger) == 0
    assert (asked(outcome).state, call_state(outcome.id)) == (Approval.State.WITHDRAWN, State.DENIED)


def test_a_cancelled_call_withdraws_its_question(call: MakeCall, unsent: list[Any], ledger: Path, ana: User) -> None:
    outcome = call("Fire", ledger=str(ledger))
    calls.cancel(Call.objects.get(pk=outcome.id), actor="agent:tester")
    assert (asked(outcome).state, call_state(outcome.id)) == (Approval.State.WITHDRAWN, State.CANCELLED)
    with pytest.raises(ApprovalError) as refused:
        approvals.decide(asked(outcome).pk, by=ana, answer="approve")
    assert refused.value.status == 409


def test_a_cancelled_call_that_was_approved_does_not_run(
    call: MakeCall, unsent: list[Any], ledger: Path, ana: User
) -> None:
    outcome = call("Fire", ledger=str(ledger))
    approvals.decide(asked(outcome).pk, by=ana, answer="approve")
    calls.cancel(Call.objects.get(pk=outcome.id), actor="agent:tester")
    perform(outcome.id)
    assert lines(ledger) == 0
    assert (asked(outcome).state, call_state(outcome.id)) == (Approval.State.WITHDRAWN, State.CANCELLED)


def test_a_yes_can_be_taken_back_before_it_is_used(
    call: MakeCall, unsent: list[Any], ledger: Path, ana: User, ben: User
) -> None:
    outcome = call("Fire", ledger=str(ledger))
    approvals.decide(asked(outcome).pk, by=ana, answer="approve")
    approvals.revoke(asked(outcome).pk, by=ben, reason="wrong account")
    perform(outcome.id)
    assert lines(ledger) == 0
    assert (asked(outcome).state, call_state(outcome.id)) == (Approval.State.REVOKED, State.DENIED)


def test_attempts_of_one_call_share_its_approval(call: MakeCall, unsent: list[Any], ledger: Path, ana: User) -> None:
    outcome = call("FireAgain", ledger=str(ledger), fails=2)
    approvals.decide(asked(outcome).pk, by=ana, answer="approve")
    for _ in range(3):
        Call.objects.filter(pk=outcome.id).update(not_before=None)
        perform(outcome.id)
    assert call_state(outcome.id) == State.SUCCEEDED
    assert Attempt.objects.filter(call=outcome.id).count() == 3
    assert events("approval", asked(outcome).pk).count("approval.consumed") == 1
