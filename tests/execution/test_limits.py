"""Limits and bounds under many threads: exactly as many get in as may, and each that did is counted once."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.utils import timezone

from audit.verification import verify
from execution import calls
from execution.errors import ErrorCode
from execution.models import Call, State
from execution.pipeline.perform import _claimed
from execution.runtimes.base import RunResult
from policy import grants, revisions
from policy.models import Approval, Grant, Meter
from registry import revision
from registry.clock import Later
from registry.models import ToolkitVersion
from tests.execution.approving import approver, asked, events
from tests.execution.conftest import Call as MakeCall
from tests.execution.racing import race
from tests.policy.rules import rule

pytestmark = pytest.mark.django_db(transaction=True)

THREADS = 16


@pytest.fixture(autouse=True)
def _the_trail_holds() -> Iterator[None]:
    yield
    assert verify().is_intact


@pytest.fixture
def ledger(tmp_path: Path) -> str:
    return str(tmp_path / "ledger")


def limit(**limits: int) -> None:
    """From now on policy allows the lab's calls, but only so many."""
    draft = revisions.new_draft(by=None, rules=[rule("bounded", tools=["Lab.*"], limits=limits)])
    revisions.activate(draft, by=None)


def outcomes(call: MakeCall, rounds: int, tool: str = "Ring", **arguments: Any) -> Counter[str]:
    """How so many rounds of sixteen threads, each with a call of its own, ended at the door."""

    def ask(number: int) -> str:
        outcome = call(tool, **arguments)
        if outcome.failure is not None and outcome.failure.code is ErrorCode.RATE_LIMITED:
            assert outcome.failure.retry_after_ms
            return "limited"
        return outcome.state

    return Counter(code for codes in race(*[ask] * THREADS, rounds=rounds) for code in codes)


def test_exactly_so_many_calls_a_minute_get_in(call: MakeCall, unsent: list[Any], ledger: str) -> None:
    limit(perMinute=20)
    assert outcomes(call, 3, ledger=ledger) == {State.QUEUED: 20, "limited": 28}
    assert Call.objects.count() == 20
    assert {meter.window: meter.count for meter in Meter.objects.all()} == {"minute": 20, "day": 20}
    Meter.objects.filter(window="minute").update(started_at=Later(-61))
    assert outcomes(call, 2, ledger=ledger) == {State.QUEUED: 20, "limited": 12}
    assert Meter.objects.get(window="day").count == 40


def test_exactly_so_many_calls_a_day_get_in(call: MakeCall, unsent: list[Any], ledger: str) -> None:
    limit(perDay=17, perMinute=100)
    assert outcomes(call, 2, ledger=ledger) == {State.QUEUED: 17, "limited": 15}


def test_exactly_so_many_calls_run_at_once(call: MakeCall, unsent: list[Any], ledger: str) -> None:
    limit(atOnce=5)
    assert outcomes(call, 2, ledger=ledger) == {State.QUEUED: 5, "limited": 27}
    first = Call.objects.earliest("id")
    with revision.pinned():
        claim = _claimed(first)
    assert claim is not None
    assert outcomes(call, 1, ledger=ledger) == {"limited": THREADS}
    calls.succeed(claim, RunResult(value=1))
    assert outcomes(call, 1, ledger=ledger) == {State.QUEUED: 1, "limited": THREADS - 1}


def test_calls_that_end_at_the_door_make_room_at_once(call: MakeCall, ledger: str) -> None:
    limit(atOnce=3)
    for _ in range(5):
        assert call("RingInline", ledger=ledger).state == State.SUCCEEDED
    assert Call.objects.count() == 5


def test_a_repeated_call_is_not_counted_again(call: MakeCall, unsent: list[Any], ledger: str) -> None:
    limit(perMinute=20)
    results = race(*[lambda n: call("Ring", call_id=f"same-{n}", ledger=ledger).id] * THREADS, rounds=5)
    assert all(len(set(ids)) == 1 for ids in results)
    assert Meter.objects.get(window="minute").count == Call.objects.count() == 5


def test_agents_and_tools_have_meters_of_their_own(call: MakeCall, unsent: list[Any], ledger: str) -> None:
    limit(perMinute=1)
    assert call("Ring", ledger=ledger).state == State.QUEUED
    assert call("SlowButSafe", ledger=ledger, seconds=0).state == State.QUEUED
    refused = call("Ring", ledger=ledger)
    assert refused.failure is not None
    assert refused.failure.code is ErrorCode.RATE_LIMITED
    assert "1 calls a minute" in refused.failure.message
    assert events("agent", "tester").count("call.rate_limited") == 1


def test_exactly_so_many_calls_wait_for_people(
    call: MakeCall, unsent: list[Any], ledger: str, settings: Any, lab: ToolkitVersion
) -> None:
    settings.PLACET_MAX_PENDING = 10
    assert outcomes(call, 2, tool="Fire", ledger=ledger) == {State.AWAITING_APPROVAL: 10, "limited": 22}
    assert Approval.objects.count() == Call.objects.count() == 10


@pytest.fixture
def grant(call: MakeCall, unsent: list[Any], ledger: str, lab: ToolkitVersion) -> Grant:
    """For half of the calls that will come."""
    ana: User = approver("ana", lab.toolkit)
    first, until = call("Fire", ledger=ledger), timezone.now() + timedelta(hours=1)
    return grants.give(asked(first), by=ana, uses=4 * THREADS, until=until, reason="a batch")


def test_a_grant_is_never_overdrawn_and_each_use_is_told(
    call: MakeCall, ledger: str, grant: Grant, settings: Any
) -> None:
    settings.PLACET_MAX_PENDING = 1_000
    half = 4 * THREADS
    assert outcomes(call, 8, tool="Fire", ledger=ledger) == {State.QUEUED: half, State.AWAITING_APPROVAL: half}
    grant.refresh_from_db()
    assert grant.used == half
    assert events("grant", grant.pk) == ["grant.given"] + ["grant.used"] * half
    assert Call.objects.filter(grant=grant, state=State.QUEUED).count() == half


def test_a_grant_taken_back_and_its_workers_agree(call: MakeCall, ledger: str, grant: Grant) -> None:
    """What a worker took, it took before the grant was gone; nothing else runs."""
    ids = [call("Fire", ledger=ledger).id for _ in range(4 * THREADS)]

    def work(number: int) -> int:
        taken = 0
        for id in ids[number :: THREADS - 1]:
            with revision.pinned():
                row = calls.read(id)
                taken += row is not None and row.state == State.QUEUED and _claimed(row) is not None
        return taken

    def revoke(number: int) -> int:
        grants.revoke(grant, by=grant.granted_by, reason="enough")
        return 0

    runners = [lambda _, place=place: work(place) for place in range(THREADS - 1)]
    (taken,) = race(*runners, revoke, rounds=1)
    states = Counter(Call.objects.filter(grant=grant).values_list("state", flat=True))
    for id in ids:
        with revision.pinned():
            row = calls.read(id)
            assert row is not None
            assert row.state != State.QUEUED or _claimed(row) is None
    after = Counter(Call.objects.filter(grant=grant).values_list("state", flat=True))
    assert after[State.RUNNING] == states[State.RUNNING] == sum(taken)
    assert after[State.RUNNING] + after[State.DENIED] == len(ids)
