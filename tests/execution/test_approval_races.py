"""Two of everything that can happen to an approval, at the same moment: one outcome, and both chains tell it.

Locks are taken in one order, the approval's row before the call's: PostgreSQL would name a deadlock as an error here.
"""

from __future__ import annotations

import os
import random
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from datetime import timedelta
from functools import cache
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
from django.contrib.auth.models import User
from django.db import transaction
from django.utils import timezone

from audit.verification import verify
from execution import breakglass, calls
from execution.claim import Claim
from execution.models import Call, State
from execution.pipeline.perform import _claimed
from execution.runtimes.base import RunResult
from execution.sweeping import sweep
from policy import approvals, grants, revisions
from policy.approvals import ApprovalError
from policy.breakglass import BreakGlassError
from policy.grants import GrantError
from policy.models import Approval, BreakGlass, Vote
from registry import revision
from registry.models import ToolkitVersion
from registry.publishing import withdraw
from tests.execution.approving import set_clock, without_guards
from tests.execution.conftest import Call as MakeCall
from tests.execution.racing import assert_consistent, race

pytestmark = pytest.mark.django_db(transaction=True)

ROUNDS = 200 if os.environ.get("PLACET_TEST_DATABASE") == "postgres" else 40  # SQLite lets one writer in at a time
# So often that some calls run, whoever is quick: most end by one of the moves that need nobody else.
MOVES = (*["approve"] * 6, *["take"] * 8, "deny", "cancel", "revoke", "sweep", "glass", "grant")

MOMENTS = (-0.005, 0.005, 0.010, 0.015, 0.020, 0.030, 0.050)  # seconds until a question's time is over

Park = Callable[..., list[UUID]]


@pytest.fixture(autouse=True)
def _the_trail_holds() -> Iterator[None]:
    yield
    assert verify().is_intact


@pytest.fixture
def three(lab: ToolkitVersion) -> list[User]:
    """People who may approve; superusers, for whom fewer questions are asked, so that a round is short."""
    return [User.objects.create_superuser(name) for name in ("ana", "ben", "eva")]


@pytest.fixture
def park(call: MakeCall, unsent: list[Any], settings: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Park:
    """Parked calls, as many as there are rounds, made in one transaction; nobody is sent a notice."""
    settings.PLACET_MAX_PENDING = 10 * ROUNDS
    monkeypatch.setattr("policy.approvalnotices.people_to_ask", lambda approval: [])
    monkeypatch.setattr("policy.notices.tell", lambda *_, **__: None)

    def make(count: int = ROUNDS, tool: str = "Fire") -> list[UUID]:
        with transaction.atomic():
            return [call(tool, ledger=str(tmp_path / "ledger")).id for _ in range(count)]

    return make


def approved(ids: list[UUID], by: User) -> list[UUID]:
    for id in ids:
        decide(id, by, "approve")
    return ids


@cache
def of(id: UUID) -> UUID:
    """The approval of a call."""
    return Approval.objects.values_list("pk", flat=True).get(call=id)


def decide(id: UUID, by: User, answer: str) -> str:
    """The approval's state after this answer, or the code of its refusal."""
    try:
        return approvals.decide(of(id), by=by, answer=answer, reason="because").state
    except ApprovalError as error:
        return error.code


def grip(id: UUID) -> Claim | None:
    """What a worker does with a message, up to the moment before the tool runs."""
    with revision.pinned():
        call = calls.read(id)
        return _claimed(call) if call is not None and call.state == State.QUEUED else None


def cancel(id: UUID) -> str:
    return calls.cancel(Call.objects.get(pk=id), actor="agent:tester").state


class Steps:
    """How far one racer has come in a round: now and then the other one waits for it, so that each wins sometimes."""

    def __init__(self) -> None:
        self._reached: defaultdict[tuple[int, str], threading.Event] = defaultdict(threading.Event)

    def reached(self, number: int, step: str) -> None:
        self._reached[number, step].set()

    def wait_for_some(self, number: int) -> None:
        step = ("", "answered", "answered", "taken")[number % 4]
        if step:
            self._reached[number, step].wait(30)
        time.sleep(number % 10 * 0.001)

    def let_pass(self, number: int) -> None:
        """On a busy machine too, the other one is the first now and then: in rounds in which it waits for nothing."""
        if number % 8 == 0:
            self._reached[number, "ended"].wait(30)


def test_of_two_who_approve_one_decides_and_of_four_workers_one_runs(park: Park, three: list[User]) -> None:
    """I13: one approval is used in the transaction of the one claim."""
    ids = park()
    answers = race(*[lambda n, who=who: decide(ids[n], who, "approve") for who in three[:2]], rounds=ROUNDS)
    assert {tuple(sorted(codes)) for codes in answers} == {("already_decided", "approved")}
    assert set(assert_consistent(ids).values()) == {("approved", "queued")}
    assert Vote.objects.count() == ROUNDS
    for claims in race(*[lambda n: grip(ids[n])] * 4, rounds=ROUNDS):
        (claim,) = [claim for claim in claims if claim is not None]
        assert claim.fence == 1
        calls.succeed(claim, RunResult(value=1))
    assert set(assert_consistent(ids).values()) == {("consumed", "succeeded")}


def test_of_three_who_approve_what_needs_two_the_second_decides(park: Park, three: list[User]) -> None:
    """I15, I17: distinct people, the first to reach the threshold wins; then one takes it back as a worker comes."""
    ids = park(tool="Detonate")
    answers = race(*[lambda n, who=who: decide(ids[n], who, "approve") for who in three], rounds=ROUNDS)
    assert {tuple(sorted(codes)) for codes in answers} == {("already_decided", "approved", "pending")}
    assert set(assert_consistent(ids).values()) == {("approved", "queued")}
    assert Vote.objects.count() == 2 * ROUNDS

    def revoke(number: int) -> str:
        try:
            return approvals.revoke(of(ids[number]), by=three[1], reason="wrong account").state
        except ApprovalError as error:
            return error.code

    results = race(lambda n: grip(ids[n]), revoke, rounds=ROUNDS)
    states = assert_consistent(ids)
    won = {(claim is not None, code, states[id]) for id, (claim, code) in zip(ids, results, strict=True)}
    assert won == {(True, "already_decided", ("consumed", "running")), (False, "revoked", ("revoked", "denied"))}


def test_one_person_who_answers_twice_at_once_counts_once(park: Park, three: list[User]) -> None:
    """I15: one review per person, though both of their windows were open."""
    ids = park(50, tool="Detonate")
    results = race(*[lambda n: decide(ids[n], three[0], "approve")] * 2, rounds=50)
    assert {tuple(sorted(codes)) for codes in results} == {("already_voted", "pending")}
    assert set(assert_consistent(ids).values()) == {("pending", "awaiting_approval")}


def test_an_approval_and_a_denial_never_both_win(park: Park, three: list[User]) -> None:
    ids = park()
    results = race(
        lambda n: decide(ids[n], three[0], "approve"), lambda n: decide(ids[n], three[1], "deny"), rounds=ROUNDS
    )
    states = assert_consistent(ids)
    for id, (yes, no) in zip(ids, results, strict=True):
        expected = (("approved", "already_decided"), ("approved", "queued"))
        if no == "denied":
            expected = (("already_decided", "denied"), ("denied", "denied"))
        assert ((yes, no), states[id]) == expected


def test_nobody_approves_after_the_moment_however_close(park: Park, three: list[User]) -> None:
    """I16: the moment is looked at in the statement that moves the approval, by the database's clock."""
    ids = park()
    rows = {row.call: row for row in Approval.objects.all()}

    def answer(number: int) -> str:
        time.sleep(number % 5 * 0.004)
        return decide(ids[number], three[0], "approve")

    def expire(number: int) -> int:
        time.sleep(number % 7 * 0.003)
        return approvals.expire_due()

    with without_guards("policy_approval", "what_an_approval_is_bound_to_never_changes"):
        results = race(
            answer, expire, rounds=ROUNDS, before=lambda n: set_clock(rows[ids[n]], decide_by=MOMENTS[n % len(MOMENTS)])
        )
    with without_guards("policy_approval", "what_an_approval_is_bound_to_never_changes"):
        for row in Approval.objects.filter(state=Approval.State.PENDING):
            set_clock(row, decide_by=-1)
    approvals.expire_due()
    states = assert_consistent(ids)
    for id, (code, _) in zip(ids, results, strict=True):
        assert states[id] == (("approved", "queued") if code == "approved" else ("expired", "expired")), code
    assert len({code for code, _ in results}) > 1, "the races were all won by the same side"


def test_no_call_runs_once_its_version_is_withdrawn(
    park: Park, three: list[User], lab: ToolkitVersion, people: dict[str, User]
) -> None:
    """I19: what was taken was taken before the withdrawal was there; everything else never runs."""
    ids, steps = park(), Steps()

    def publish_again(number: int) -> None:
        again = {"state": "published", "withdrawn_at": None, "withdrawal_reason": ""}
        ToolkitVersion.objects.filter(pk=lab.pk).update(**again)

    def answer_and_take(number: int) -> tuple[float, Claim | None]:
        steps.let_pass(number)
        decide(ids[number], three[0], "approve")
        steps.reached(number, "answered")
        began, claim = time.monotonic(), grip(ids[number])
        steps.reached(number, "taken")
        return began, claim

    def end(number: int) -> float:
        steps.wait_for_some(number)
        withdraw(lab, by=people["author"], reason="broken")
        steps.reached(number, "ended")
        return time.monotonic()

    with without_guards("registry_toolkitversion", "a_version_moves_only_forward"):
        results = race(answer_and_take, end, rounds=ROUNDS, before=publish_again)
    for id, ((began, claim), withdrawn) in zip(ids, results, strict=True):
        assert claim is None or began < withdrawn
        assert grip(id) is None
    states = assert_consistent(ids)
    for id, ((_, claim), _) in zip(ids, results, strict=True):
        assert states[id] == (("consumed", "running") if claim is not None else ("withdrawn", "denied"))
    assert len(set(states.values())) > 1, "the races were all won by the same side"


def test_no_call_runs_on_an_answer_under_a_policy_that_is_gone(park: Park, three: list[User]) -> None:
    """I14: either it was taken before the new revision was live, or its approval is withdrawn."""
    live, other = revisions.new_draft(by=None), revisions.new_draft(by=None)
    revisions.activate(live, by=None)
    ids: list[UUID] = []
    steps = Steps()

    def ask(number: int) -> None:
        ids.extend(park(1))

    def answer_and_take(number: int) -> tuple[float, Claim | None]:
        steps.let_pass(number)
        decide(ids[number], three[0], "approve")
        steps.reached(number, "answered")
        began, claim = time.monotonic(), grip(ids[number])
        steps.reached(number, "taken")
        return began, claim

    def activate(number: int) -> float:
        steps.wait_for_some(number)
        revisions.activate((live, other)[(number + 1) % 2], by=None)
        steps.reached(number, "ended")
        return time.monotonic()

    results = race(answer_and_take, activate, rounds=ROUNDS, before=ask)
    revisions.activate(revisions.new_draft(by=None), by=None)  # so that none of theirs is live
    for id, ((began, claim), activated) in zip(ids, results, strict=True):
        assert claim is None or began < activated
        assert grip(id) is None
        if Approval.objects.get(call=id).state == Approval.State.PENDING:
            assert decide(id, three[1], "approve") == "withdrawn"
    states = assert_consistent(ids)
    for id, ((_, claim), _) in zip(ids, results, strict=True):
        assert states[id] == (("consumed", "running") if claim is not None else ("withdrawn", "denied"))
    assert len(set(states.values())) > 1, "the races were all won by the same side"


def test_a_cancellation_and_a_worker_agree(park: Park, three: list[User]) -> None:
    ids = approved(park(), three[0])
    results = race(lambda n: grip(ids[n]), lambda n: cancel(ids[n]), rounds=ROUNDS)
    states = assert_consistent(ids)
    for id, (claim, seen) in zip(ids, results, strict=True):
        if claim is None:
            assert (states[id], seen) == (("withdrawn", "cancelled"), State.CANCELLED)
        else:
            assert states[id] == ("consumed", "running")
            assert Call.objects.get(pk=id).cancel_requested


def test_a_cancellation_and_an_answer_agree(park: Park, three: list[User]) -> None:
    ids = park()
    results = race(lambda n: decide(ids[n], three[0], "approve"), lambda n: cancel(ids[n]), rounds=ROUNDS)
    assert {tuple(codes) for codes in results} <= {("approved", "cancelled"), ("withdrawn", "cancelled")}
    assert set(assert_consistent(ids).values()) == {("withdrawn", "cancelled")}
    assert not any(grip(id) for id in ids)


def test_of_two_who_break_the_glass_one_does(park: Park, three: list[User]) -> None:
    ids = park(50)
    codes = race(*[lambda n, who=who: smash(ids[n], who) for who in three[:2]], rounds=50)
    assert {tuple(sorted(pair)) for pair in codes} <= {("already_decided", "queued"), ("not_waiting", "queued")}
    assert set(assert_consistent(ids).values()) == {("approved", "queued")}
    assert BreakGlass.objects.count() == 50


def smash(id: UUID, by: User) -> str:
    try:
        return breakglass.run(id, by=by, reason="the site is down").state
    except BreakGlassError as error:
        return error.code


def test_everything_at_once_ends_in_good_order(park: Park, three: list[User]) -> None:
    """Every move of an approval by eight threads in no order at all, each call met by all of them several times."""
    ids = park(20, tool="Detonate") + park(20)
    until = timezone.now() + timedelta(hours=1)

    def attempt(id: UUID, dice: random.Random) -> str:
        who = dice.choice(three)
        match dice.choice(MOVES):
            case "take":
                claim = grip(id)
                if claim is not None:
                    calls.succeed(claim, RunResult(value=1))
                return "ran" if claim is not None else ""
            case "cancel":
                return cancel(id)
            case "revoke":
                return approvals.revoke(of(id), by=who, reason="no").state
            case "sweep":
                sweep()
            case "glass":
                return smash(id, who)
            case "grant":
                grants.give(Approval.objects.get(call=id), by=who, uses=1, until=until, reason="more")
            case answer:
                return decide(id, who, answer)
        return ""

    def run(number: int, place: int) -> str:
        try:
            return attempt(ids[number % len(ids)], random.Random(number * 100 + place))
        except (ApprovalError, GrantError):
            return "refused"

    results = race(*[lambda n, place=place: run(n, place) for place in range(8)], rounds=3 * len(ids))
    ran = sum(codes.count("ran") for codes in results)
    states = assert_consistent(ids)
    assert [state for _, state in states.values()].count("succeeded") == ran > 0
