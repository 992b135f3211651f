"""The demo's past: whole, verifiable, written once, and never into a production home."""

import re
from io import StringIO

import pytest
from django.conf import LazySettings
from django.contrib.auth.models import User
from django.core.management import CommandError, call_command
from django.utils import timezone

from audit.models import Event
from execution import totals
from execution.models import Call, CallTotal
from execution.portal.standing import Standing
from execution.portal.statistics import WINDOWS, gather
from execution.timeline import timeline_of
from policy.models import Agent, Approval

pytestmark = pytest.mark.django_db


def make(**asked: int) -> str:
    told = StringIO()
    call_command("make_demo_history", stdout=told, **asked)
    return told.getvalue()


def test_it_writes_so_many_calls_and_events_that_verify() -> None:
    assert make(calls=200, tools=20) == "Wrote 200 calls and 2,000 events of the last thirty days.\n"
    assert Call.objects.filter(tool__isnull=False).count() == 200 + 1 + 3  # one lost, three waiting
    assert Event.objects.count() >= 2_000
    assert CallTotal.objects.exists()
    assert Approval.objects.filter(state="pending").count() == 3
    call_command("verify_audit", stdout=StringIO())


def test_a_past_is_counted_where_its_time_was_counted_before() -> None:
    while totals.count_due():
        continue
    make(calls=200)
    root = Standing.of(User.objects.create_superuser("root"))
    assert gather(root, WINDOWS["30d"]).total() > 180  # its first hours are before the first day that is drawn


def test_each_call_of_the_past_reads_like_one_that_happened() -> None:
    make(calls=300, events=0)
    told = [timeline_of(call) for call in Call.objects.exclude(approval=None, state="unknown")]
    for each in told:
        assert each.faults == (), each.call.state
        assert each.moments[0].event == "call.received"
        assert each.call.finished_at is None or each.call.finished_at <= timezone.now()
        assert all(link.event.at <= timezone.now() for link in each.evidence.links)
    asked = [each for each in told if each.call.approval_id and each.call.state == "succeeded"]
    assert asked
    for each in asked:
        assert [span.kind for span in each.spans] == ["people", "queue", "run"]
        assert each.spans[0].milliseconds > 1_000
        sentences = " ".join(moment.sentence for moment in each.moments)
        assert "High risk runs once one person who may approve agrees" in sentences
        assert re.search(r"One person had to agree until \d{4}-\d\d-\d\d \d\d:\d\d UTC\.", sentences)
        decided = next(moment for moment in each.moments if moment.event == "call.decided")
        assert [check["check"] for check in decided.checks] == ["permission", "default"]


def test_a_home_gets_one_past_only() -> None:
    make(calls=20)
    before = Call.objects.count()
    with pytest.raises(CommandError, match="already"):
        make(calls=20)
    assert Call.objects.count() == before


def test_a_past_that_fails_leaves_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise RuntimeError("the disk is full")

    monkeypatch.setattr("execution.demohistory.present.waiting", fail)
    with pytest.raises(RuntimeError):
        make(calls=20)
    assert not Call.objects.exists()
    assert not Agent.objects.exists()


def test_production_gets_no_invented_calls(settings: LazySettings) -> None:
    settings.PLACET_PRODUCTION = True
    with pytest.raises(CommandError, match="production"):
        make(calls=20)
    assert not Call.objects.exists()


@pytest.mark.parametrize("asked", [{"calls": 0}, {"calls": -5}, {"events": -1}, {"tools": -1}])
def test_numbers_that_make_no_sense_are_refused(asked: dict[str, int]) -> None:
    with pytest.raises(CommandError, match="between"):
        make(**asked)
