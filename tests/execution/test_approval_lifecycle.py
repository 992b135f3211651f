"""The life of calls that people decide about, as a machine: whatever happens in whatever order, I1-I9 and I13-I19 hold.

A small model beside the database says what each step must lead to.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable
from datetime import timedelta
from typing import Any, ClassVar

import pytest
from django.contrib.auth.models import User
from django.db import transaction
from django.utils import timezone
from guardian.shortcuts import assign_perm, remove_perm
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    Bundle,
    RuleBasedStateMachine,
    initialize,
    invariant,
    multiple,
    precondition,
    rule,
    run_state_machine_as_test,
)

from audit.models import Event
from audit.verification import verify
from execution import breakglass, calls
from execution.claim import Claim
from execution.errors import ErrorCode, Failure
from execution.models import Attempt, Call, State
from execution.outcomes import outcome_of
from execution.pipeline.perform import _claimed
from execution.runtimes.base import RunResult
from execution.sweeping import sweep
from policy import approvals, grants, revisions
from policy.models import Approval, Grant, Vote
from policy.rulesets import live_rules
from registry import revision
from registry.clock import Later
from registry.models import Toolkit, ToolkitVersion
from registry.publishing import withdraw
from tests.execution.approving import approver, move_clock
from tests.execution.conftest import Call as MakeCall
from tests.execution.lifemodel import ENDS, PEOPLE, TOOLS, Known, Model, said
from tests.execution.racing import assert_consistent

pytestmark = pytest.mark.django_db

MOST_CALLS = 5  # few, so that much happens to each
MOST_TROUBLES = {"cancel": 2, "revoke": 1, "policy": 1, "time": 2, "right": 3, "glass": 1}  # or no call would ever run


def trouble(kind: str) -> Callable[[Any], Any]:
    """A rule that can happen only so often in one life."""
    return precondition(lambda self: self.troubles[kind] < MOST_TROUBLES[kind])


class Lifecycle(RuleBasedStateMachine):
    """One agent, three approvers who may lose the right, two workers, a sweeper, and those who write policy."""

    make: MakeCall
    lab: ClassVar[ToolkitVersion]

    submitted = Bundle("submitted")
    claims = Bundle("claims")

    def __init__(self) -> None:
        super().__init__()
        self.model = Model()
        self.troubles: Counter[str] = Counter()
        self._undo = transaction.atomic()
        self._undo.__enter__()

    def teardown(self) -> None:
        assert verify().is_intact
        transaction.set_rollback(True)
        self._undo.__exit__(None, None, None)

    # What a caller does

    @initialize(target=submitted)
    def begin(self) -> Any:
        return multiple(*[self.submit(tool) for tool in ("Fire", "Detonate", "FireAgain")])

    @precondition(lambda self: len(self.model.known) < MOST_CALLS and not self.model.is_withdrawn)
    @rule(target=submitted, tool=st.sampled_from(sorted(TOOLS)))
    def submit(self, tool: str) -> Any:
        call_id = f"call-{len(self.model.known)}"
        grant = next((grant for grant in Grant.objects.order_by("pk") if self.model.is_in_force(grant, tool)), None)
        outcome = self._ask(tool, call_id)
        row = Call.objects.get(pk=outcome.id)
        is_parked = TOOLS[tool] > 0 and grant is None
        assert outcome.state == (State.AWAITING_APPROVAL if is_parked else State.QUEUED)
        assert row.grant_id == (grant.pk if grant is not None else None)
        self.model.known[outcome.id] = Known(tool=tool, call_id=call_id, policy=live_rules().number, grant=row.grant_id)
        return outcome.id

    @rule(id=submitted)
    def repeat(self, id: Any) -> None:
        """I1: the same request again is the same call, as it stands."""
        if not self.model.is_withdrawn:
            known = self.model.known[id]
            assert self._ask(known.tool, known.call_id) == outcome_of(Call.objects.get(pk=id))

    @trouble("cancel")
    @rule(id=submitted)
    def cancel(self, id: Any) -> None:
        self.troubles["cancel"] += 1
        before = Call.objects.get(pk=id)
        after = calls.cancel(before, actor="agent:tester")
        if before.state in (State.QUEUED, State.AWAITING_APPROVAL):
            assert after.state == State.CANCELLED
        else:
            assert after.state == before.state
            assert after.cancel_requested == (before.cancel_requested or before.state == State.RUNNING)

    # What people do

    @rule(id=submitted, who=st.sampled_from(PEOPLE), answer=st.sampled_from(["approve"] * 5 + ["deny"]))
    def decide(self, id: Any, who: str, answer: str) -> None:
        """I15, I16, I17: who may, in time, once each; the first to reach the threshold wins."""
        approval = self.model.approval(id)
        if approval is None:
            return
        known, refusal = self.model.known[id], self.model.refusal(approval, id, who)
        if not refusal:
            self.model.count(known, who, answer)
        by = self._user(who)
        told = said(lambda: approvals.decide(approval.pk, by=by, answer=answer, reason="because").state)
        assert told == (refusal or ("denied" if answer == "deny" else self.model.if_agreed(known)))

    @rule(id=submitted, who=st.sampled_from(PEOPLE), uses=st.integers(1, 2))
    def grant(self, id: Any, who: str, uses: int) -> None:
        approval = self.model.approval(id)
        if approval is None or approval.quorum > 1 or self.model.is_withdrawn:
            return
        refusal, until = self.model.refusal(approval, id, who), timezone.now() + timedelta(hours=1)
        if not refusal:
            self.model.count(self.model.known[id], who, "approve")
        by = self._user(who)
        told = said(lambda: str(grants.give(approval, by=by, uses=uses, until=until, reason="a batch").max_uses))
        assert told == (refusal or str(uses))

    @precondition(lambda self: Grant.objects.filter(revoked_at=None).exists())
    @rule()
    def take_a_grant_back(self) -> None:
        grant = Grant.objects.filter(revoked_at=None).earliest("pk")
        grants.revoke(grant, by=grant.granted_by, reason="enough")

    @rule(target=claims, id=submitted, meanwhile=st.sampled_from(["nothing", "nothing", "rights", "time"]))
    def all_agree_and_a_worker_comes(self, id: Any, meanwhile: str) -> Any:
        for who in PEOPLE:
            self.decide(id, who, "approve")
        lost = sorted(self.model.permitted) if meanwhile == "rights" else []
        for who in lost:
            self.lose_or_regain_the_right(who)
        if meanwhile == "time":
            self.time_passes(id, "run_by")
        taken = self.take(id)
        for who in lost:
            self.lose_or_regain_the_right(who)
        return taken

    @trouble("revoke")
    @rule(id=submitted, who=st.sampled_from(PEOPLE))
    def revoke(self, id: Any, who: str) -> None:
        approval = self.model.approval(id)
        if approval is None:
            return
        self.troubles["revoke"] += 1
        expected = "revoked" if approval.state == "approved" else "already_decided"
        told = said(lambda: approvals.revoke(approval.pk, by=self._user(who), reason="no").state)
        assert told == (expected if who in self.model.permitted else "not_an_approver")

    @trouble("glass")
    @rule(id=submitted)
    def break_the_glass(self, id: Any) -> None:
        approval = self.model.approval(id)
        if approval is None or Call.objects.get(pk=id).state == State.DENIED:
            return
        self.troubles["glass"] += 1
        told = said(lambda: breakglass.run(id, by=self._user("zoe"), reason="the site is down").state)
        if approval.state != "pending":
            assert told == "not_waiting"
        elif self.model.is_past(approval, "decide_by"):
            assert told == "expired"
        else:
            assert told == State.QUEUED
            self.model.known[id].is_glass_broken = True

    @trouble("right")
    @rule(who=st.sampled_from(PEOPLE))
    def lose_or_regain_the_right(self, who: str) -> None:
        self.troubles["right"] += 1
        toolkit = Toolkit.objects.get(pk=self.lab.toolkit_id)
        change = remove_perm if who in self.model.permitted else assign_perm
        change("registry.approve_toolkit", self._user(who), toolkit)
        self.model.permitted ^= {who}

    @precondition(lambda self: Call.objects.filter(state__in=(State.QUEUED, State.RUNNING)).exists())
    @trouble("policy")
    @rule()
    def activate_a_policy(self) -> None:
        self.troubles["policy"] += 1
        revisions.activate(revisions.new_draft(by=None), by=None)

    @precondition(lambda self: len(self.model.known) == MOST_CALLS and not self.model.is_withdrawn)
    @rule()
    def withdraw_the_version(self) -> None:
        withdraw(self.lab, by=None, reason="broken")
        self.model.is_withdrawn = True

    # What time does

    @trouble("time")
    @rule(id=submitted, clock=st.sampled_from(["decide_by", "run_by"]))
    def time_passes(self, id: Any, clock: str) -> None:
        self.troubles["time"] += 1
        approval = self.model.approval(id)
        if approval is not None and approval.state == ("pending" if clock == "decide_by" else "approved"):
            move_clock(approval, **{clock: -1})

    @rule()
    def sweep(self) -> None:
        """I16: what was not decided or not used in time is over."""
        before = {row.pk: row for row in Approval.objects.all()}
        late = {pk for pk, row in before.items() if row.state in ("pending", "approved") and self.model.is_late(row)}
        sweep()
        for row in Approval.objects.all():
            ends = {"pending": "expired", "approved": "lapsed"}
            assert row.state == (ends[before[row.pk].state] if row.pk in late else before[row.pk].state)

    @precondition(lambda self: Call.objects.filter(state=State.RUNNING).exists())
    @rule()
    def a_worker_is_lost(self) -> None:
        """I8: what may not run twice is left to a person."""
        row = Call.objects.filter(state=State.RUNNING).earliest("id")
        Call.objects.filter(pk=row.pk).update(lease_until=Later(-1))
        sweep()
        after = Call.objects.get(pk=row.pk).state
        assert after == State.UNKNOWN or self.model.known[row.pk].tool == "FireAgain"

    # What a worker does

    @rule(target=claims, id=submitted)
    def take(self, id: Any) -> Any:
        """I13, I14, I18, I19: all that the yes was bound to is looked at once more, then it is used up."""
        row, approval, known = Call.objects.get(pk=id), self.model.approval(id), self.model.known[id]
        if row.state != State.QUEUED:
            return multiple()
        expected = self.model.fate(row, approval, known)
        with revision.pinned():
            claim = _claimed(row)
        row.refresh_from_db()
        assert (claim is not None) == (expected == "taken"), expected
        if claim is not None:
            assert claim.fence == known.fences + 1
            known.fences += 1
            return claim
        if approval is not None and known.fences == 0:
            approval.refresh_from_db()
            assert (approval.state, row.state) == ENDS[expected]
            if expected == "reopened":
                known.yes &= self.model.permitted
        else:
            assert row.state == (State.CANCELLED if expected == "cancelled" else State.DENIED)
        return multiple()

    @rule(claim=claims)
    def succeed(self, claim: Claim) -> None:
        self._write(claim, State.SUCCEEDED, lambda: calls.succeed(claim, RunResult(value=claim.fence)))

    @rule(claim=claims)
    def fail(self, claim: Claim) -> None:
        failure = Failure(code=ErrorCode.EXECUTION_FAILED, message="No")
        self._write(claim, State.FAILED, lambda: calls.fail(claim, failure))

    @rule(claim=claims)
    def retry(self, claim: Claim) -> None:
        if self.model.known[claim.id].tool == "FireAgain":
            failure = Failure(code=ErrorCode.EXECUTION_FAILED, message="Not yet", can_retry=True)
            self._write(claim, State.QUEUED, lambda: calls.retry(claim, failure, 0.0))

    def _write(self, claim: Claim, state: str, write: Any) -> None:
        """I7: only under the fence that holds."""
        before = Call.objects.get(pk=claim.id)
        holds = before.state == State.RUNNING and before.fence == claim.fence
        write()
        assert Call.objects.get(pk=claim.id).state == (state if holds else before.state)

    # How it is asked

    @staticmethod
    def _user(name: str) -> User:
        return User.objects.get(username=name)

    def _ask(self, tool: str, call_id: str) -> Any:
        more = {"fails": 9} if tool == "FireAgain" else {}
        return self.make(tool, call_id=call_id, ledger="/nowhere", **more)

    @invariant()
    def all_is_as_it_must_be(self) -> None:
        rows = {row.pk: row for row in Call.objects.all()}
        assert set(rows) == set(self.model.known)  # I1
        assert_consistent(id for id in rows if rows[id].approval_id is not None)  # I3, I4, I13, I16
        numbers: dict[Any, list[int]] = defaultdict(list)
        for attempt in Attempt.objects.order_by("number"):
            numbers[attempt.call_id].append(attempt.number)
        for id, row in rows.items():
            known = self.model.known[id]
            assert row.fence == known.fences  # I6
            assert (row.lease_until is not None) == (row.state == State.RUNNING)
            assert numbers[id] == list(range(1, row.fence + 1 - (row.state == State.RUNNING)))
            assert row.fence <= 1 or known.tool == "FireAgain"  # I8, I9
            if not row.is_open:  # I5
                told = (row.state, row.result, row.error)
                known.told = known.told or told
                assert known.told == told
        voters = Vote.objects.filter(voided_at=None, answer="approve")
        for approval in Approval.objects.exclude(state="pending"):  # I15
            people = set(voters.filter(approval=approval).values_list("person__username", flat=True))
            known = self.model.known[approval.call]
            assert people == known.yes
            if approval.state in ("approved", "consumed"):
                assert len(people) >= approval.quorum or known.is_glass_broken
        for grant in Grant.objects.all():
            on_it = [row for row in rows.values() if row.grant_id == grant.pk]
            used = Event.objects.filter(subject_kind="grant", subject_id=str(grant.pk), event="grant.used").count()
            assert len(on_it) == grant.used == used <= grant.max_uses


@pytest.fixture
def machine(call: MakeCall, unsent: list[Any], lab: ToolkitVersion, monkeypatch: pytest.MonkeyPatch) -> type[Lifecycle]:
    for name in PEOPLE:
        approver(name, lab.toolkit)
    User.objects.create_superuser("zoe")
    monkeypatch.setattr("policy.approvalnotices.people_to_ask", lambda approval: [])
    monkeypatch.setattr("policy.notices.tell", lambda *_, **__: None)

    class Ready(Lifecycle):
        make = staticmethod(call)

    Ready.lab = lab
    return Ready


def test_a_call_that_people_decide_about_lives_by_the_rules(machine: type[Lifecycle]) -> None:
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
