"""A bounded yes for later calls: its meter, its condition, its end."""

from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.utils import timezone
from guardian.shortcuts import remove_perm

from execution.models import Call, State
from execution.pipeline.perform import perform
from policy import grants
from policy.approvals import ApprovalError
from policy.grants import GrantError
from policy.models import Approval, Grant
from registry.models import Toolkit, ToolkitVersion
from tests.execution.approving import asked, call_state, events, lines
from tests.execution.conftest import Call as MakeCall

pytestmark = pytest.mark.django_db


@pytest.fixture
def grant(call: MakeCall, unsent: list[Any], ledger: Path, ana: User) -> Grant:
    """Two more calls, while the amount stays small; given with the first one's approval."""
    return given(call, ana, ledger, uses=2, when="has(input.amount) && input.amount <= 10.0")


def given(call: MakeCall, by: User, ledger: Path, **terms: Any) -> Grant:
    first = call("Fire", ledger=str(ledger), amount=3)
    known: dict[str, Any] = {"uses": 1, "until": timezone.now() + timedelta(hours=1), "reason": "a batch of refunds"}
    return grants.give(asked(first), by=by, **known | terms)


def test_later_calls_run_without_a_question_and_move_the_meter(call: MakeCall, ledger: Path, grant: Grant) -> None:
    assert Approval.objects.get().state == Approval.State.APPROVED
    for used in (1, 2):
        outcome = call("Fire", ledger=str(ledger), amount=4)
        assert outcome.state == State.QUEUED
        perform(outcome.id)
        assert call_state(outcome.id) == State.SUCCEEDED
        grant.refresh_from_db()
        assert grant.used == used
        assert Call.objects.get(pk=outcome.id).grant_id == grant.pk
    assert lines(ledger) == 2
    assert call("Fire", ledger=str(ledger), amount=4).state == State.AWAITING_APPROVAL
    assert events("grant", grant.pk) == ["grant.given", "grant.used", "grant.used"]


def test_the_decision_names_the_grant_and_who_gave_it(call: MakeCall, ledger: Path, grant: Grant) -> None:
    outcome = call("Fire", ledger=str(ledger), amount=4)
    decision = Call.objects.get(pk=outcome.id).decision
    assert f"grant {grant.pk}" in decision
    assert "ana granted 2 calls" in decision


def test_a_call_outside_the_condition_asks_as_before(call: MakeCall, ledger: Path, grant: Grant) -> None:
    assert call("Fire", ledger=str(ledger), amount=11).state == State.AWAITING_APPROVAL
    assert call("Fire", ledger=str(ledger)).state == State.AWAITING_APPROVAL
    grant.refresh_from_db()
    assert grant.used == 0


def test_the_same_call_again_takes_no_second_use(call: MakeCall, ledger: Path, grant: Grant) -> None:
    for _ in range(2):
        call("Fire", call_id="one", ledger=str(ledger), amount=4)
    grant.refresh_from_db()
    assert grant.used == 1


def test_a_revoked_grant_stops_even_what_waits_in_the_queue(
    call: MakeCall, ledger: Path, grant: Grant, ana: User
) -> None:
    waiting = call("Fire", ledger=str(ledger), amount=4)
    grants.revoke(grant, by=ana, reason="enough")
    perform(waiting.id)
    assert lines(ledger) == 0
    assert call_state(waiting.id) == State.DENIED
    assert call("Fire", ledger=str(ledger), amount=4).state == State.AWAITING_APPROVAL
    with pytest.raises(GrantError):
        grants.revoke(grant, by=ana, reason="again")


def test_a_grant_ends_when_it_says(call: MakeCall, ledger: Path, grant: Grant) -> None:
    Grant.objects.filter(pk=grant.pk).update(until=timezone.now() - timedelta(seconds=1))
    assert call("Fire", ledger=str(ledger), amount=4).state == State.AWAITING_APPROVAL


def test_a_grant_falls_with_its_givers_right(
    call: MakeCall, ledger: Path, grant: Grant, ana: User, lab: ToolkitVersion
) -> None:
    waiting = call("Fire", ledger=str(ledger), amount=4)
    remove_perm("registry.approve_toolkit", ana, Toolkit.objects.get(pk=lab.toolkit_id))
    perform(waiting.id)
    assert call_state(waiting.id) == State.DENIED
    assert call("Fire", ledger=str(ledger), amount=4).state == State.AWAITING_APPROVAL


def test_another_tool_is_not_covered(call: MakeCall, ledger: Path, grant: Grant) -> None:
    assert call("FireAgain", ledger=str(ledger), fails=0).state == State.AWAITING_APPROVAL


@pytest.mark.parametrize(
    "terms",
    [
        {"uses": 0},
        {"uses": 10_001},
        {"until": timezone.now() - timedelta(days=1)},
        {"reason": " "},
        {"when": "input.amount <= "},
        {"when": "input.sum <= 10"},
        {"when": "input.amount > 5.0 && input.amount < 3.0"},
    ],
    ids=["none", "too many", "over", "no reason", "syntax", "unknown field", "never"],
)
def test_a_grant_without_bounds_is_refused_and_decides_nothing(
    call: MakeCall, unsent: list[Any], ledger: Path, ana: User, terms: dict[str, Any]
) -> None:
    with pytest.raises(GrantError):
        given(call, ana, ledger, **terms)
    assert Approval.objects.get().state == Approval.State.PENDING
    assert not Grant.objects.exists()


def test_one_person_cannot_grant_what_two_must_approve(
    call: MakeCall, unsent: list[Any], ledger: Path, ana: User
) -> None:
    waiting = call("Detonate", ledger=str(ledger))
    with pytest.raises(GrantError, match="2 people"):
        grants.give(asked(waiting), by=ana, uses=5, until=timezone.now() + timedelta(hours=1), reason="hurry")
    assert asked(waiting).votes.count() == 0


def test_a_stranger_grants_nothing(call: MakeCall, unsent: list[Any], ledger: Path) -> None:
    with pytest.raises(ApprovalError):
        given(call, User.objects.create_user("stranger"), ledger)
    assert not Grant.objects.exists()
