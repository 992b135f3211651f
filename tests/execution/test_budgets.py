"""Retry budgets and crowding: how much of the workers' time one tool may take from the others."""

from typing import Any

import pytest
from django.db import connection

from execution import budgets, crowding
from execution.errors import ErrorCode
from execution.models import OPEN, Attempt, Call, RetryBudget, State
from execution.pipeline.perform import perform
from registry.clock import Later
from registry.models import ToolkitVersion
from registry.resolution import resolve
from registry.toolref import ToolRef
from registry.toolspec import ToolSpec
from tests.execution.conftest import Call as MakeCall
from tests.execution.hands import Hands, fails, works

pytestmark = pytest.mark.django_db


@pytest.fixture
def hands(lab: ToolkitVersion, monkeypatch: pytest.MonkeyPatch, settings: Any) -> Hands:
    settings.PLACET_BREAKER_FAILURES = 0
    fake = Hands()
    monkeypatch.setattr("execution.pipeline.perform.runtime_for", lambda tool: fake)
    return fake


@pytest.fixture
def flaky(lab: ToolkitVersion) -> ToolSpec:
    ref = ToolRef.parse("Lab.Flaky")
    assert ref is not None
    tool = resolve(ref)
    assert tool is not None
    return tool


@pytest.fixture(autouse=True)
def _nobody_called_yet() -> None:
    budgets._calls.clear()


def granted(tool: ToolSpec, tries: int) -> int:
    return sum(budgets.spend(tool) for _ in range(tries))


def remember_sent(monkeypatch: pytest.MonkeyPatch) -> list[tuple[Any, float]]:
    sent: list[tuple[Any, float]] = []

    def send(call: Any, delay: float = 0.0) -> bool:
        sent.append((call, delay))
        return True

    monkeypatch.setattr("execution.dispatch.send", send)
    return sent


def test_a_fresh_bucket_holds_a_few(flaky: ToolSpec) -> None:
    assert 10 <= granted(flaky, 20) <= 12  # and one for each second that this takes


def test_time_fills_it(flaky: ToolSpec) -> None:
    granted(flaky, 15)
    RetryBudget.objects.update(filled_at=Later(-5), tokens=0)
    assert 5 <= granted(flaky, 10) <= 7


def test_a_tenth_of_the_calls_fills_it(flaky: ToolSpec) -> None:
    granted(flaky, 15)
    for _ in range(100):
        budgets.count(flaky)
    RetryBudget.objects.update(tokens=0)
    assert 10 <= granted(flaky, 20) <= 12
    assert not budgets._calls


def test_it_never_holds_more_than_its_most(flaky: ToolSpec) -> None:
    budgets.spend(flaky)
    RetryBudget.objects.update(filled_at=Later(-86_400))
    assert 50 <= granted(flaky, 100) <= 53


def test_each_tool_has_its_own(flaky: ToolSpec, lab: ToolkitVersion) -> None:
    granted(flaky, 20)
    ref = ToolRef.parse("Lab.FireAgain")
    other = resolve(ref) if ref is not None else None
    assert other is not None
    assert budgets.spend(other)


def test_i9_retries_stay_within_the_budget_however_many_calls_fail(
    call: MakeCall, hands: Hands, unsent: list[Any]
) -> None:
    hands.does = fails(can_retry=True)
    ids = [call("Flaky", ledger="x", fails=9).id for _ in range(40)]
    for _ in range(4):
        for id in ids:
            perform(id)
    calls, attempts = Call.objects.count(), Attempt.objects.count()
    assert calls == 40
    assert not Call.objects.filter(state__in=OPEN).exists()
    seconds = 20  # more than this test takes
    assert 40 < attempts <= 40 + 10 + 40 * budgets.PER_CALL + seconds * budgets.PER_SECOND
    assert attempts < 40 * 3


def test_over_budget_the_call_ends_with_the_failure_it_had(
    call: MakeCall, hands: Hands, unsent: list[Any], flaky: ToolSpec
) -> None:
    budgets.spend(flaky)
    RetryBudget.objects.update(tokens=0, filled_at=Later(0))
    hands.does = fails(ErrorCode.TIMEOUT)
    id = call("Flaky", ledger="x", fails=9).id
    perform(id)
    row = Call.objects.get(pk=id)
    assert (row.state, row.fence) == (State.TIMED_OUT, 1)


def test_retry_after_is_honoured_up_to_the_longest_backoff(
    call: MakeCall, hands: Hands, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Check 26; the real attempt index is sent with the same call_id, checks 14 and 26."""
    sent = remember_sent(monkeypatch)
    hands.does = fails(can_retry=True, retry_after_ms=86_400_000)
    id = call("Flaky", ledger="x", fails=9).id
    perform(id)
    hands.does = works
    perform(id)
    most = hands.runs[0].tool.runtime.retry.max_backoff
    assert sent[1] == (id, most)
    assert [run.attempt for run in hands.runs] == [1, 2]
    assert len({run.call_id for run in hands.runs}) == 1


def test_only_so_many_calls_of_a_tool_run_at_once_and_the_next_ones_wait(
    call: MakeCall, hands: Hands, monkeypatch: pytest.MonkeyPatch, settings: Any
) -> None:
    settings.PLACET_TOOL_CONCURRENCY = 1
    sent = remember_sent(monkeypatch)
    second, other = call("Fail", message="x").id, call("Environment").id

    def meanwhile(invocation: Any) -> Any:
        hands.does = works
        perform(second)
        perform(other)
        return works(invocation)

    hands.does = meanwhile
    first = call("Fail", message="x").id
    perform(first)
    waiting = Call.objects.get(pk=second)
    assert (waiting.state, waiting.fence) == (State.QUEUED, 0)
    assert waiting.not_before is not None
    assert waiting.resend_at is not None
    assert waiting.resend_at > waiting.not_before
    assert sent[-1] == (second, crowding.SOON)
    assert [run.tool.name for run in hands.runs] == ["Fail", "Environment"]
    perform(second)
    assert Call.objects.get(pk=second).state != State.QUEUED


def test_to_count_them_the_index_of_open_calls_is_enough(lab: ToolkitVersion) -> None:
    if connection.vendor != "sqlite":  # a planner with a table this small reads all of it
        return
    with connection.cursor() as cursor:
        cursor.execute("EXPLAIN QUERY PLAN " + crowding._RUNNING, [1])
        plan = " ".join(str(row) for row in cursor.fetchall())
    assert "open_calls" in plan
