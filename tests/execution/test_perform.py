"""Chapter two: claims, attempts, retries, timeouts, crashes, cancellations and lost workers."""

import time
from pathlib import Path
from typing import Any

import pytest
from django.db import DatabaseError, transaction

from audit.models import Event
from execution import calls, losses
from execution.errors import ErrorCode
from execution.models import Attempt, Call, Demotion, State
from execution.pipeline.perform import perform
from execution.runtimes.base import RunResult
from execution.sweeping import sweep
from policy import agents
from policy.caller import Caller
from policy.models import Agent
from registry.clock import Later
from registry.models import ToolkitVersion
from registry.publishing import withdraw
from registry.resolution import resolve
from registry.toolref import ToolRef
from registry.toolspec import ToolSpec
from tests.execution.conftest import Call as MakeCall

pytestmark = pytest.mark.django_db


def events(call_pk: Any) -> list[str]:
    found = Event.objects.filter(subject_kind="call", subject_id=str(call_pk)).order_by("seq")
    return list(found.values_list("event", flat=True))


def lines(path: Path) -> int:
    return len(path.read_text().splitlines()) if path.exists() else 0


def claimed(call: MakeCall, tool: str, **arguments: Any) -> Any:
    """A call in a worker's hands that has not run yet."""
    row = Call.objects.get(pk=call(tool, **arguments).id)
    ref = ToolRef.parse(row.tool_ref)
    assert ref is not None
    tool_spec = resolve(ref)
    assert tool_spec is not None
    claim = calls.claim(row, tool_spec, "tester")
    assert claim is not None
    return claim


def test_a_queued_call_runs_once_however_often_its_message_comes(
    call: MakeCall, unsent: list[Any], tmp_path: Path
) -> None:
    ledger = tmp_path / "ledger"
    outcome = call("Ring", ledger=str(ledger))
    assert unsent == [outcome.id]
    for _ in range(5):
        perform(outcome.id)
    assert lines(ledger) == 1
    assert events(outcome.id) == ["call.received", "call.decided", "call.queued", "call.started", "call.succeeded"]


def test_a_flaky_tool_is_tried_again_until_it_works(call: MakeCall, at_once: None, tmp_path: Path) -> None:
    outcome = call("Flaky", ledger=str(tmp_path / "ledger"), fails=2)
    assert (outcome.value, outcome.failure) == (3, None)
    statuses = list(Attempt.objects.filter(call_id=outcome.id).order_by("number").values_list("status", flat=True))
    assert statuses == ["failed", "failed", "succeeded"]


def test_retries_end_at_the_most_that_the_tool_allows(call: MakeCall, at_once: None, tmp_path: Path) -> None:
    outcome = call("Flaky", ledger=str(tmp_path / "ledger"), fails=9)
    assert outcome.state == State.FAILED
    assert lines(tmp_path / "ledger") == 3


def test_a_tool_that_is_not_idempotent_is_never_tried_again(call: MakeCall, at_once: None, tmp_path: Path) -> None:
    outcome = call("FlakyOnce", ledger=str(tmp_path / "ledger"))
    assert outcome.state == State.FAILED
    assert lines(tmp_path / "ledger") == 1


@pytest.mark.parametrize("how", ["sleep", "regex"])
def test_a_timeout_holds_even_if_the_tool_ignores_it(call: MakeCall, at_once: None, how: str) -> None:
    began = time.monotonic()
    outcome = call("Stuck", how=how)
    assert time.monotonic() - began < 1.5
    assert outcome.state == State.TIMED_OUT
    assert outcome.failure is not None
    assert outcome.failure.code is ErrorCode.TIMEOUT


def test_an_inline_tool_that_overran_is_served_by_the_queue_from_then_on(call: MakeCall, unsent: list[Any]) -> None:
    assert call("StuckInline").state == State.TIMED_OUT
    assert Demotion.objects.get().tool.name == "StuckInline"
    assert Event.objects.filter(event="tool.demoted").count() == 1
    second = call("StuckInline")
    assert second.state == State.QUEUED
    assert unsent == [second.id]


def test_a_crash_of_the_tools_process_is_a_failed_call(call: MakeCall, at_once: None) -> None:
    outcome = call("Crash")
    assert outcome.state == State.FAILED
    assert outcome.failure is not None
    assert "process" in outcome.failure.message


def test_an_answer_that_breaks_the_tools_promise_is_a_failure(call: MakeCall, at_once: None) -> None:
    outcome = call("Lie")
    assert outcome.state == State.FAILED
    assert outcome.failure is not None
    assert "not a number" not in str(outcome.failure)


def test_an_answer_over_the_limit_is_a_failure_that_names_it(call: MakeCall, at_once: None) -> None:
    outcome = call("Big", size=1_200_000)
    assert outcome.failure is not None
    assert outcome.failure.details == {"limit": 1_000_000, "refused": "response_too_large"}


def test_a_tool_sees_nothing_of_our_environment(call: MakeCall, at_once: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DATABASE_URL", "postgres://x")
    names = call("Environment").value
    assert not [name for name in names if name.startswith(("PLACET", "DJANGO", "DATABASE", "CELERY"))]


def test_cancelled_before_the_claim_it_never_runs(call: MakeCall, unsent: list[Any], tmp_path: Path) -> None:
    outcome = call("Ring", ledger=str(tmp_path / "ledger"))
    after = calls.cancel(Call.objects.get(pk=outcome.id), actor="agent:tester")
    assert after.state == State.CANCELLED
    perform(outcome.id)
    assert lines(tmp_path / "ledger") == 0


def test_cancelled_but_done_is_recorded_as_succeeded(call: MakeCall, unsent: list[Any], tmp_path: Path) -> None:
    claim = claimed(call, "Ring", ledger=str(tmp_path / "ledger"))
    after = calls.cancel(Call.objects.get(pk=claim.id), actor="agent:tester")
    assert (after.state, after.cancel_requested) == (State.RUNNING, True)
    outcome = calls.succeed(claim, RunResult(value=1))
    assert outcome is not None
    assert outcome.state == State.SUCCEEDED
    assert Call.objects.get(pk=claim.id).cancel_requested
    assert events(claim.id)[-2:] == ["call.cancel_requested", "call.succeeded"]


def test_a_result_with_an_old_fence_is_refused_and_recorded(call: MakeCall, unsent: list[Any], tmp_path: Path) -> None:
    zombie = claimed(call, "SlowButSafe", ledger=str(tmp_path / "ledger"), seconds=0)
    expire_lease(zombie.id)
    sweep()
    perform(zombie.id)
    row = Call.objects.get(pk=zombie.id)
    assert (row.state, row.fence, row.result) == (State.SUCCEEDED, 2, '"done"')
    assert calls.succeed(zombie, RunResult(value="late")) is None
    assert Call.objects.get(pk=zombie.id).result == '"done"'
    assert events(zombie.id)[-1] == "call.stale_write"


def test_who_asked_inline_hears_the_answer_of_whoever_took_the_call_over(
    call: MakeCall, unsent: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    def taken_over(tool: ToolSpec, result: RunResult) -> None:
        running = Call.objects.get(state=State.RUNNING)
        if running.fence == 1:
            expire_lease(running.pk)
            sweep()
            perform(running.pk)

    monkeypatch.setattr("execution.pipeline.perform.check_output", taken_over)
    outcome = call("Echo", value=7)
    assert (outcome.state, outcome.value) == (State.SUCCEEDED, 7)
    assert events(outcome.id)[3:] == ["call.requeued", "call.started", "call.succeeded", "call.stale_write"]


def test_a_lost_worker_of_an_idempotent_tool_means_another_attempt(
    call: MakeCall, unsent: list[Any], tmp_path: Path
) -> None:
    claim = claimed(call, "SlowButSafe", ledger=str(tmp_path / "ledger"), seconds=0)
    expire_lease(claim.id)
    unsent.clear()
    sweep()
    assert unsent == [claim.id]
    assert Call.objects.get(pk=claim.id).state == State.QUEUED


def test_a_lost_worker_of_any_other_tool_means_unknown_until_a_person_says(
    call: MakeCall, unsent: list[Any], tmp_path: Path
) -> None:
    claim = claimed(call, "Slow", ledger=str(tmp_path / "ledger"), seconds=0)
    expire_lease(claim.id)
    sweep()
    row = Call.objects.get(pk=claim.id)
    assert (row.state, row.sealed) == (State.UNKNOWN, None)
    perform(claim.id)
    assert lines(tmp_path / "ledger") == 0
    assert losses.settle(row, actor="user:author", succeeded=True, reason="Seen in the ledger")
    assert not losses.settle(row, actor="user:author", succeeded=False, reason="Changed my mind")
    assert Call.objects.get(pk=claim.id).state == State.SUCCEEDED


def test_a_call_that_keeps_costing_workers_is_given_up(call: MakeCall, unsent: list[Any], tmp_path: Path) -> None:
    outcome = call("SlowButSafe", ledger=str(tmp_path / "ledger"), seconds=0)
    ref = ToolRef.parse("Lab.SlowButSafe")
    assert ref is not None
    tool = resolve(ref)
    assert tool is not None
    for _ in range(3):
        assert calls.claim(Call.objects.get(pk=outcome.id), tool, "tester")
        expire_lease(outcome.id)
        sweep()
    row = Call.objects.get(pk=outcome.id)
    assert row.state == State.FAILED
    assert "poisoned" in row.error


def test_what_the_broker_lost_is_sent_again(call: MakeCall, unsent: list[Any], tmp_path: Path) -> None:
    outcome = call("Ring", ledger=str(tmp_path / "ledger"))
    unsent.clear()
    sweep()
    assert unsent == []
    Call.objects.filter(pk=outcome.id).update(resend_at=Later(-1))
    sweep()
    sweep()
    assert unsent == [outcome.id]


def test_a_call_nobody_took_in_time_expires_and_never_runs(call: MakeCall, unsent: list[Any], tmp_path: Path) -> None:
    outcome = call("Ring", ledger=str(tmp_path / "ledger"))
    Call.objects.filter(pk=outcome.id).update(deadline=Later(-1))
    perform(outcome.id)
    assert Call.objects.get(pk=outcome.id).state == State.QUEUED
    sweep()
    assert Call.objects.get(pk=outcome.id).state == State.EXPIRED
    assert lines(tmp_path / "ledger") == 0


def test_a_version_withdrawn_before_the_claim_is_not_run(
    call: MakeCall, unsent: list[Any], tmp_path: Path, lab: ToolkitVersion, people: dict[str, Any]
) -> None:
    outcome = call("Ring", ledger=str(tmp_path / "ledger"))
    withdraw(lab, by=people["author"], reason="Bad")
    perform(outcome.id)
    row = Call.objects.get(pk=outcome.id)
    assert row.state == State.DENIED
    assert "withdrawn" in row.error
    assert lines(tmp_path / "ledger") == 0


def test_an_agent_disabled_before_the_claim_is_judged_again(
    call: MakeCall, unsent: list[Any], tmp_path: Path, caller: Caller
) -> None:
    outcome = call("Ring", ledger=str(tmp_path / "ledger"))
    agents.set_active(Agent.objects.get(pk=caller.agent_id), False, actor="shell")
    perform(outcome.id)
    assert Call.objects.get(pk=outcome.id).state == State.DENIED
    assert lines(tmp_path / "ledger") == 0


def test_an_exceptions_text_reaches_the_developer_only(call: MakeCall, at_once: None) -> None:
    outcome = call("Explode", secret="detail-of-the-bug")
    assert outcome.failure is not None
    assert "detail-of-the-bug" not in outcome.failure.message
    assert "detail-of-the-bug" in outcome.failure.developer_message


def test_a_call_that_ended_never_changes(call: MakeCall) -> None:
    outcome = call("Echo", value=1)
    for change in ({"result": "2"}, {"state": State.FAILED}, {"input": "{}"}):
        with pytest.raises(DatabaseError), transaction.atomic():
            Call.objects.filter(pk=outcome.id).update(**change)
    with pytest.raises(DatabaseError), transaction.atomic():
        Call.objects.filter(pk=outcome.id)._raw_delete("default")


def expire_lease(call_pk: Any) -> None:
    Call.objects.filter(pk=call_pk).update(lease_until=Later(-1))
