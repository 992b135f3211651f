"""Totals: each span counted once, when none of its calls can change any more; pages add up what was not counted yet."""

from collections import Counter
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.contrib.auth.models import User

from execution import totals
from execution.models import CallTotal, TotalledSpan
from execution.portal.standing import Standing
from execution.portal.statistics import WINDOWS, gather
from tests.portal.conftest import MakeCall

pytestmark = pytest.mark.django_db

NOW = datetime(2026, 11, 16, 16, 30, tzinfo=UTC)


def count_all(now: datetime = NOW) -> None:
    while totals.count_due(now):
        continue


@pytest.fixture
def root(db: None) -> Standing:
    return Standing.of(User.objects.create_superuser("root"))


def test_calls_are_counted_by_outcome_in_the_hour_they_were_made_in(call: MakeCall) -> None:
    for state in ("succeeded", "succeeded", "failed", "timed_out", "denied", "rejected", "expired", "cancelled"):
        call(state, at=NOW.replace(hour=12, minute=20))
    count_all()
    (total,) = CallTotal.objects.filter(span__hours=1)
    assert total.span.start == NOW.replace(hour=12, minute=0)
    assert (total.succeeded, total.failed, total.refused, total.dropped) == (2, 2, 2, 2)


def test_an_hour_that_is_not_over_is_not_counted(call: MakeCall) -> None:
    call(at=NOW - timedelta(minutes=5))
    count_all()
    assert not TotalledSpan.objects.filter(start=NOW.replace(minute=0)).exists()


@pytest.mark.parametrize("state", ["awaiting_approval", "queued", "unknown"])
def test_an_hour_with_a_call_that_can_still_change_is_counted_later(call: MakeCall, state: str) -> None:
    moving = call(state, at=NOW.replace(hour=12, minute=20))
    count_all()
    assert not TotalledSpan.objects.filter(start=NOW.replace(hour=12, minute=0)).exists()
    type(moving).objects.filter(pk=moving.pk).update(state="failed", finished_at=NOW)
    count_all()
    assert TotalledSpan.objects.filter(start=NOW.replace(hour=12, minute=0), hours=1).count() == 1


def test_a_day_is_added_up_from_its_hours(call: MakeCall) -> None:
    yesterday = NOW - timedelta(days=1)
    for hour in (1, 1, 9):
        call(at=yesterday.replace(hour=hour), duration_ms=hour * 10.0)
    call("failed", at=yesterday.replace(hour=9))
    count_all()
    (day,) = CallTotal.objects.filter(span__hours=24)
    assert (day.succeeded, day.failed) == (3, 1)
    assert sum(day.durations.values()) == 3
    TotalledSpan.objects.all().delete()
    totals._count(totals.floor(yesterday, 24), 24)  # and from its calls, where the hours are not there
    (again,) = CallTotal.objects.all()
    assert (again.succeeded, again.failed, again.durations) == (day.succeeded, day.failed, day.durations)


def test_counting_twice_counts_once(call: MakeCall) -> None:
    call(at=NOW.replace(hour=12))
    count_all()
    before = list(CallTotal.objects.values())
    count_all()
    assert list(CallTotal.objects.values()) == before


def test_old_hours_are_forgotten_and_days_kept(call: MakeCall) -> None:
    call(at=NOW - timedelta(days=7, hours=12))
    count_all()
    count_all(NOW + timedelta(days=3))
    oldest = TotalledSpan.objects.filter(hours=1).order_by("start").values_list("start", flat=True)[0]
    assert oldest >= NOW + timedelta(days=3) - timedelta(days=8, hours=1)
    assert CallTotal.objects.filter(span__hours=24).count() == 1


def test_the_sweeper_counts_and_then_rests(call: MakeCall, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(totals, "_next_look", 0.0)
    call(ago=timedelta(hours=30))
    for _ in range(40):
        totals.sweep()
    assert CallTotal.objects.count() == 2  # its hour and its day
    monkeypatch.setattr(totals, "count_due", lambda: pytest.fail("it looked again within a minute"))
    totals.sweep()


@pytest.mark.parametrize("window", WINDOWS)
def test_figures_are_the_same_counted_or_not(call: MakeCall, root: Standing, window: str) -> None:
    for days in (0.02, 0.3, 0.9, 1.5, 5, 6.2, 9, 20, 29.5, 45):
        call("succeeded", at=NOW - timedelta(days=days), duration_ms=days * 100)
        call("failed", at=NOW - timedelta(days=days))
    call("awaiting_approval", at=NOW - timedelta(days=4))
    raw = gather(root, WINDOWS[window], NOW)
    count_all()
    counted = gather(root, WINDOWS[window], NOW)
    assert raw.bars == counted.bars
    assert raw.steps == counted.steps
    assert raw.tools == counted.tools
    assert raw.total() == {"24h": 6, "7d": 13, "30d": 19}[window]


def test_quantiles_are_right_to_about_four_percent() -> None:
    values = [1.7**step for step in range(1, 20)] * 5
    steps = Counter(map(totals.step_of, values))
    for part in (0.1, 0.5, 0.95):
        exact = sorted(values)[int(len(values) * part)]
        found = totals.quantile(steps, part)
        assert found == pytest.approx(exact, rel=0.05)
    assert totals.quantile({}, 0.5) is None


def test_a_person_gets_the_figures_of_their_own_toolkits_and_agents(
    call: MakeCall, person: Callable[..., User], tool: Any, agent: Any
) -> None:
    from guardian.shortcuts import assign_perm

    call(at=NOW.replace(hour=12))
    count_all()
    publisher, owner, stranger = (person(name) for name in ("pia", "oda", "sol"))
    assign_perm("registry.publish_toolkit", publisher, tool.version.toolkit)
    type(agent).objects.filter(pk=agent.pk).update(owner=owner)
    sums = [gather(Standing.of(who), WINDOWS["24h"], NOW).total() for who in (publisher, owner, stranger)]
    assert sums == [1, 1, 0]


def test_calls_written_into_the_past_are_counted_again(call: MakeCall) -> None:
    call(at=NOW - timedelta(hours=30))
    count_all()
    before = TotalledSpan.objects.count()
    call("failed", at=NOW - timedelta(hours=30))
    totals.count_again(NOW - timedelta(hours=30), NOW)
    assert {(total.succeeded, total.failed) for total in CallTotal.objects.all()} == {(1, 1)}
    assert TotalledSpan.objects.count() == before


@pytest.mark.django_db(transaction=True)
def test_a_sweeper_that_read_before_the_past_was_written_changes_nothing(
    call: MakeCall, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It has read an empty hour, the past is written and counted, and only then does it write its own count."""
    at, counted = NOW.replace(hour=12, minute=20), totals._counted

    def overtaken(calls: Any) -> Any:
        found = counted(calls)
        monkeypatch.setattr(totals, "_counted", counted)
        call(at=at)
        totals.count_again(at, NOW)
        return found

    monkeypatch.setattr(totals, "_counted", overtaken)
    totals._count(totals.floor(at, 1), 1)
    assert CallTotal.objects.get(span__hours=1).succeeded == 1
