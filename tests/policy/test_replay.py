"""A replay says what a revision would decide otherwise about recorded calls, and survives what happens to workers."""

from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import orjson
import pytest
from django.utils import timezone

from audit.models import Event
from config.celery import app
from execution import recorded
from execution.models import Call
from policy import agents, replays, rulesets
from policy.masked import fields_read, is_masked
from policy.models import Replay
from policy.replay import replayed
from policy.replaytally import MAX_LISTED
from tests.policy.stage import SMALL, Stage, draft, live, stage

pytestmark = pytest.mark.django_db

NO_REFUNDS = {"name": "no refunds", "tools": ["Payments.Refund"], "effect": "deny"}


@pytest.fixture
def here() -> Stage:
    return stage()


@pytest.fixture
def unsent(monkeypatch: pytest.MonkeyPatch) -> list[UUID]:
    """No worker is there; holds the ids that would have been sent."""
    sent: list[UUID] = []
    monkeypatch.setattr(replays, "send", sent.append)
    return sent


def report(number: int, last: int = 100) -> dict[str, Any]:
    return replayed(rulesets.rules_numbered(number), last, on_progress=lambda done, total: None)


def calls(found: dict[str, Any], kind: str) -> list[str]:
    return [entry["call"] for entry in found[kind]]


# What a replay finds


def test_a_call_is_listed_where_the_revision_decides_otherwise_than_was_decided(here: Stage) -> None:
    denied = here.called(here.refund, {"amount": 5}, "deny")
    asked = here.called(here.refund, {"amount": 500}, "ask")
    allowed = here.called(here.refund, {"amount": 700}, "allow", rule="old rule", revision=3)
    same = here.called(here.balance, {}, "allow")
    found = report(draft(SMALL, NO_REFUNDS | {"when": "input.amount > 600.0"}).number)
    assert calls(found, "newly_allowed") == [str(denied)]
    assert calls(found, "newly_denied") == [str(allowed)]
    assert calls(found, "newly_asked") == []
    assert str(asked) not in str(found)
    assert str(same) not in str(found)
    assert found["evaluated"] == 4
    (entry,) = found["newly_denied"]
    assert entry["was"] == {"effect": "allow", "rule": "old rule", "revision": 3}
    assert entry["now"]["rule"] == "no refunds"
    assert (entry["agent"], entry["tool_id"]) == ("support-bot", "Payments.Refund@1.0.0")


def test_a_call_that_would_need_a_person_now_is_newly_asked(here: Stage) -> None:
    call = here.called(here.balance, {}, "allow")
    ask = {"name": "ask", "tools": ["Payments.*"], "effect": "ask", "ask": {"quorum": 1}}
    assert calls(report(draft(ask).number), "newly_asked") == [str(call)]


def test_the_summary_counts_per_agent_and_per_tool(here: Stage) -> None:
    other = agents.create("other-bot", actor="shell", call=["Payments"])
    for amount in (5, 6, 700):
        here.called(here.refund, {"amount": amount}, "ask")
    here.called(here.refund, {"amount": 5}, "ask", agent=other)
    here.called(here.balance, {}, "allow")
    summary = report(draft(SMALL).number)["summary"]
    assert (summary["newly_allowed"], summary["unchanged"], summary["undecidable"]) == (2, 3, 0)
    assert [(row["agent"], row["evaluated"], row["newly_allowed"]) for row in summary["agents"]] == [
        ("support-bot", 4, 2),
        ("other-bot", 1, 0),
    ]
    assert [(row["tool_id"], row["evaluated"], row["newly_allowed"]) for row in summary["tools"]] == [
        ("Payments.Refund@1.0.0", 4, 2),
        ("Payments.Balance@1.0.0", 1, 0),
    ]


def test_only_the_newest_calls_are_judged_and_in_batches_none_is_missed(
    here: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(recorded, "BATCH", 3)
    made = [here.called(here.refund, {"amount": 5}, "ask") for _ in range(10)]
    found = report(draft(SMALL).number, last=7)
    assert calls(found, "newly_allowed") == [str(id) for id in sorted(made, reverse=True)[:7]]
    assert found["evaluated"] == 7


def test_a_call_that_was_rejected_before_it_was_judged_is_left_out_and_does_not_count(here: Stage) -> None:
    call = here.called(here.refund, {"amount": 5}, "ask")
    here.called(here.refund, {"amount": 5}, state="rejected", is_judged=False)
    found = report(draft(SMALL).number, last=1)
    assert (calls(found, "newly_allowed"), found["evaluated"]) == ([str(call)], 1)


def test_lists_end_where_they_are_full_and_counts_do_not(here: Stage) -> None:
    for _ in range(MAX_LISTED + 5):
        here.called(here.balance, {}, "deny")
    found = report(0, last=1_000)
    assert len(found["newly_allowed"]) == MAX_LISTED
    assert found["summary"]["newly_allowed"] == MAX_LISTED + 5


def test_a_condition_sees_the_moment_of_the_call_not_that_of_the_replay(here: Stage) -> None:
    night = here.called(here.balance, {}, "allow", at=datetime(2026, 3, 1, 23, 30, tzinfo=UTC))
    here.called(here.balance, {}, "allow", at=datetime(2026, 3, 1, 12, 0, tzinfo=UTC))
    closed = {"name": "closed at night", "when": "now.getHours() >= 22", "effect": "deny"}
    assert calls(report(draft(closed).number), "newly_denied") == [str(night)]


def test_a_call_that_a_grant_let_through_was_asked_about_by_the_rules(here: Stage) -> None:
    here.called(here.refund, {"amount": 500}, "allow", rule="grant 1", grant=here.granted())
    found = report(0)
    assert (found["summary"]["newly_asked"], found["summary"]["unchanged"]) == (0, 1)


def test_a_call_of_a_version_that_was_withdrawn_is_still_judged(here: Stage) -> None:
    from registry.publishing import withdraw

    call = here.called(here.refund, {"amount": 5}, "ask")
    withdraw(here.refund.version, by=None, reason="old")
    assert calls(report(draft(SMALL).number), "newly_allowed") == [str(call)]


def test_without_any_recorded_call_the_report_is_empty(here: Stage) -> None:
    found = report(0)
    assert (found["evaluated"], found["summary"]["agents"], found["newly_denied"]) == (0, [], [])


# What the record hides


def test_a_rule_on_a_masked_value_makes_the_call_undecidable_not_denied(here: Stage) -> None:
    call = here.called(here.refund, {"amount": 5, "pin": "4711"}, "allow")
    found = report(draft({"name": "pins", "when": "input.pin == '4711'", "effect": "deny"}).number)
    assert [entry["call"] for entry in found["undecidable"]] == [str(call)]
    assert found["undecidable"][0]["reason"] == "Rule 'pins' looks at input.pin, which is masked in the record"
    assert found["newly_denied"] == found["newly_allowed"] == found["newly_asked"] == []
    assert (found["summary"]["undecidable"], found["summary"]["unchanged"]) == (1, 0)
    assert found["summary"]["agents"][0]["undecidable"] == 1


def test_a_condition_that_fails_on_a_mark_is_undecidable(here: Stage) -> None:
    here.called(here.refund, {"amount": 5, "card": "4111 1111 1111 1111"}, "allow")
    found = report(draft({"name": "cards", "when": "int(input.card) > 7", "effect": "allow"}).number)
    assert found["summary"]["undecidable"] == 1


def test_a_condition_that_fails_on_a_whole_record_is_a_denial(here: Stage) -> None:
    here.called(here.refund, {"amount": 5}, "allow")
    found = report(draft({"name": "cards", "when": "input.card == 'x'", "effect": "allow"}).number)
    assert (found["summary"]["newly_denied"], found["summary"]["undecidable"]) == (1, 0)


def test_a_rule_that_looks_elsewhere_decides_although_something_is_masked(here: Stage) -> None:
    here.called(here.refund, {"amount": 5, "pin": "4711"}, "ask")
    found = report(draft(SMALL).number)
    assert (found["summary"]["newly_allowed"], found["summary"]["undecidable"]) == (1, 0)


def test_a_rule_on_a_masked_value_that_has_no_say_changes_nothing(here: Stage) -> None:
    here.called(here.refund, {"amount": 5, "pin": "4711"}, "ask")
    pins = {"name": "pins", "when": "input.pin == '4711'", "effect": "allow"}
    behind = report(draft(SMALL, pins).number)
    assert (behind["summary"]["newly_allowed"], behind["summary"]["undecidable"]) == (1, 0)
    before = report(draft(pins, SMALL).number)
    assert before["summary"]["undecidable"] == 1
    denied = report(draft(pins, NO_REFUNDS).number)
    assert (denied["summary"]["newly_denied"], denied["summary"]["undecidable"]) == (1, 0)


@pytest.mark.parametrize(
    ("condition", "fields"),
    [
        ("input.amount <= 100.0", [("amount",)]),
        ("input.payment.card.startsWith('4')", [("payment", "card")]),
        ('input["odd key"] == 1', [("odd key",)]),
        ("input.items[0].price > 1.0 && input.note == ''", [("items", 0, "price"), ("note",)]),
        ("input.items.exists(item, item.price > 1.0)", [("items",)]),
        ("size(input) > 1", [()]),
        ("has(input.note)", [("note",)]),
        ("agent.name == 'a' && context.user_id == 'input'", [()]),
        ("agent.input == 1", []),
    ],
)
def test_the_fields_that_a_condition_reads_are_known(condition: str, fields: list[Any]) -> None:
    assert list(fields_read(condition)) == fields


def test_a_text_without_a_mark_is_not_masked() -> None:
    assert not is_masked('{"list":[1,2],"text":"[x]"}')
    assert is_masked('{"pin":"[REDACTED:schema:0123456789ab]"}')


# Its life in the database


def test_a_worker_takes_a_replay_works_it_off_and_tells_how_far_it_is(here: Stage, unsent: list[UUID]) -> None:
    here.called(here.refund, {"amount": 5}, "ask")
    asked = replays.ask(draft(SMALL).number, 50, by=here.editor)
    assert (asked.state, unsent) == ("waiting", [])
    replays.work_off(asked.pk)
    done = Replay.objects.get(pk=asked.pk)
    assert (done.state, done.evaluated, done.total, done.attempts) == ("done", 1, 1, 1)
    assert done.result is not None
    assert done.result["summary"]["newly_allowed"] == 1
    assert done.finished_at is not None


def test_who_asked_for_a_replay_is_on_record(here: Stage, unsent: list[UUID]) -> None:
    revision = draft(SMALL)
    replays.ask(revision.number, 50, by=here.editor)
    event = Event.objects.get(subject_kind="policy", subject_id=str(revision.number), event="policy.replayed")
    assert (event.actor, orjson.loads(event.detail or "{}")["last"]) == ("user:editor", 50)


@pytest.mark.django_db(transaction=True)
def test_a_replay_is_sent_when_it_is_committed_and_runs_in_the_worker(monkeypatch: pytest.MonkeyPatch) -> None:
    here = stage()
    here.called(here.refund, {"amount": 5}, "ask")
    monkeypatch.setitem(app.conf, "task_always_eager", True)
    asked = replays.ask(draft(SMALL).number, 50, by=here.editor)
    assert Replay.objects.get(pk=asked.pk).state == "done"


def test_a_replay_that_runs_is_not_taken_twice(here: Stage, unsent: list[UUID]) -> None:
    asked = replays.ask(0, 50, by=here.editor)
    assert replays._take(asked.pk) is not None
    assert replays._take(asked.pk) is None


def lose_worker(id: UUID) -> None:
    Replay.objects.filter(pk=id).update(lease_until=timezone.now() - timedelta(seconds=1))


def test_a_lost_worker_s_replay_is_sent_and_taken_again_and_its_own_result_is_dropped(
    here: Stage, unsent: list[UUID]
) -> None:
    asked = replays.ask(0, 50, by=here.editor)
    first = replays._take(asked.pk)
    assert first is not None
    lose_worker(asked.pk)
    replays.sweep()
    assert unsent == [asked.pk]
    second = replays._take(asked.pk)
    assert second is not None
    replays._end(first, state="done", result={"evaluated": 99})
    assert Replay.objects.get(pk=asked.pk).state == "running"
    with pytest.raises(replays._Lost):
        replays._teller(first)(1, 2)
    replays._end(second, state="done", result={"evaluated": 0})
    assert Replay.objects.get(pk=asked.pk).result == {"evaluated": 0}


def test_a_replay_that_loses_every_worker_fails_and_says_so(here: Stage, unsent: list[UUID]) -> None:
    asked = replays.ask(0, 50, by=here.editor)
    for _ in range(replays.MAX_ATTEMPTS):
        assert replays._take(asked.pk) is not None
        lose_worker(asked.pk)
    replays.sweep()
    failed = Replay.objects.get(pk=asked.pk)
    assert (failed.state, failed.lease_until) == ("failed", None)
    assert "workers" in failed.error
    assert unsent == []


def test_a_replay_that_the_broker_lost_is_sent_again_after_a_while(here: Stage, unsent: list[UUID]) -> None:
    asked = replays.ask(0, 50, by=here.editor)
    replays.sweep()
    assert unsent == []
    Replay.objects.filter(pk=asked.pk).update(created_at=timezone.now() - timedelta(minutes=1))
    replays.sweep()
    assert unsent == [asked.pk]


def test_a_broker_that_is_away_costs_nobody_an_error(here: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    from policy.tasks import run_replay

    def away(**_: Any) -> None:
        raise ConnectionError

    monkeypatch.setattr(run_replay, "apply_async", away)
    asked = replays.ask(0, 50, by=here.editor)
    replays.send(asked.pk)
    assert Replay.objects.get(pk=asked.pk).state == "waiting"


def test_a_draft_thrown_away_in_the_meantime_ends_its_replay(here: Stage, unsent: list[UUID]) -> None:
    from policy import revisions

    revision = draft(SMALL)
    asked = replays.ask(revision.number, 50, by=here.editor)
    revisions.discard(revision, by=None)
    replays.work_off(asked.pk)
    failed = Replay.objects.get(pk=asked.pk)
    assert failed.state == "failed"
    assert failed.error == f"There is no policy revision {revision.number} any more."


def test_a_bug_fails_the_replay_and_stays_in_the_log(
    here: Stage, unsent: list[UUID], monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def broken(*args: Any, **kwargs: Any) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr(replays, "replayed", broken)
    asked = replays.ask(0, 50, by=here.editor)
    replays.work_off(asked.pk)
    failed = Replay.objects.get(pk=asked.pk)
    assert (failed.state, "log" in failed.error) == ("failed", True)
    assert "ZeroDivisionError" in caplog.text


def test_one_person_has_few_replays_under_way(here: Stage, unsent: list[UUID]) -> None:
    for _ in range(replays.MAX_OPEN):
        replays.ask(0, 50, by=here.editor)
    with pytest.raises(replays.ReplayError, match="under way"):
        replays.ask(0, 50, by=here.editor)
    replays.ask(0, 50, by=here.auditor)


def test_old_replays_are_forgotten(here: Stage, unsent: list[UUID]) -> None:
    old, new = replays.ask(0, 1, by=here.editor), replays.ask(0, 1, by=here.editor)
    for row in (old, new):
        replays.work_off(row.pk)
    Replay.objects.filter(pk=old.pk).update(finished_at=timezone.now() - timedelta(days=31))
    replays.sweep()
    assert list(Replay.objects.values_list("pk", flat=True)) == [new.pk]


def test_a_draft_that_changed_is_replayed_as_it_is_now(here: Stage) -> None:
    from policy import revisions
    from policy.rulespec import read_rule

    here.called(here.refund, {"amount": 5}, "ask")
    revision = draft(SMALL)
    assert report(revision.number)["summary"]["newly_allowed"] == 1
    revisions.replace_rules(revision, [read_rule(NO_REFUNDS)], by=None)
    assert report(revision.number)["summary"]["newly_denied"] == 1


def test_a_replay_changes_no_call_and_judging_takes_no_query_per_call(
    here: Stage, django_assert_max_num_queries: Any
) -> None:
    live(SMALL)
    for _ in range(150):
        here.called(here.refund, {"amount": 5}, "ask")
    before = list(Call.objects.values())
    with django_assert_max_num_queries(25):
        assert report(0, last=150)["evaluated"] == 150
    assert list(Call.objects.values()) == before
