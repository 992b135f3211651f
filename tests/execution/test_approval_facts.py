"""What an approval holds, whom it is told to, and how many may wait."""

from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.utils import timezone

from execution.errors import ErrorCode
from execution.models import Call, State
from execution.sweeping import sweep
from policy import approvals
from policy.caller import Caller
from policy.models import Agent, Approval, Notice
from policy.views.likes import pasts
from tests.execution.approving import asked, events, move_clock
from tests.execution.conftest import Call as MakeCall

pytestmark = pytest.mark.django_db


def test_deciders_see_exactly_what_runs_except_what_is_marked_secret(
    call: MakeCall, unsent: list[Any], ledger: Path
) -> None:
    outcome = call("Fire", ledger=f"{ledger}-password=hunter2", amount=5, code="0000-1111")
    shown = approvals.shown_arguments(asked(outcome))
    assert shown is not None
    assert shown["ledger"] == f"{ledger}-password=hunter2"
    assert shown["amount"] == 5
    assert "0000" not in str(shown["code"])
    assert b"hunter2" not in bytes(asked(outcome).sealed_arguments or b"")


def test_too_many_waiting_calls_are_turned_away_and_leave_their_call_id_free(
    call: MakeCall, unsent: list[Any], ledger: Path, settings: Any, ana: User
) -> None:
    settings.PLACET_MAX_PENDING = 2
    first = call("Fire", ledger=str(ledger))
    call("Fire", ledger=str(ledger))
    refused = call("Fire", call_id="three", ledger=str(ledger))
    assert refused.failure is not None
    assert (refused.failure.code, refused.failure.can_retry) == (ErrorCode.RATE_LIMITED, True)
    assert (Call.objects.count(), Approval.objects.count()) == (2, 2)
    assert "call.rate_limited" in events("agent", "tester")
    approvals.decide(asked(first).pk, by=ana, answer="deny", reason="no")
    assert call("Fire", call_id="three", ledger=str(ledger)).state == State.AWAITING_APPROVAL


def test_who_answers_for_the_agent_hears_what_came_of_it(
    call: MakeCall, unsent: list[Any], ledger: Path, ana: User, caller: Caller
) -> None:
    owner = User.objects.create_user("owner", "owner@placet.invalid")
    Agent.objects.filter(pk=caller.agent_id).update(owner=owner)
    first, second = call("Fire", ledger=str(ledger)), call("Fire", ledger=str(ledger), amount=2)
    assert set(Notice.objects.values_list("kind", "target")) == {("approval.asked", "ana@placet.invalid")}
    approvals.decide(asked(first).pk, by=ana, answer="deny", reason="no")
    move_clock(asked(second), decide_by=-1)
    sweep()
    told = Notice.objects.filter(target="owner@placet.invalid").order_by("pk")
    assert list(told.values_list("kind", flat=True)) == ["approval.decided", "approval.expired"]


def test_the_last_decisions_on_like_calls_are_at_hand(
    call: MakeCall, unsent: list[Any], ledger: Path, ana: User
) -> None:
    first, second = call("Fire", ledger=str(ledger)), call("Fire", ledger=str(ledger), amount=7)
    call("FireAgain", ledger=str(ledger), fails=0)
    approvals.decide(asked(first).pk, by=ana, answer="deny", reason="no")
    assert [approval.pk for approval in pasts([asked(second)])[asked(second)]] == [asked(first).pk]


def test_what_an_approval_is_bound_to_cannot_be_edited(call: MakeCall, unsent: list[Any], ledger: Path) -> None:
    from django.db import IntegrityError, transaction

    approval = asked(call("Fire", ledger=str(ledger)))
    for change in ({"digest": "0" * 64}, {"quorum": 2}, {"decide_by": timezone.now() + timedelta(days=9)}):
        with pytest.raises(IntegrityError), transaction.atomic():
            Approval.objects.filter(pk=approval.pk).update(**change)
    with pytest.raises(IntegrityError), transaction.atomic():
        Approval.objects.filter(pk=approval.pk).update(state="consumed", run_by=timezone.now(), ended_at=timezone.now())
