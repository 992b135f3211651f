"""An operator's own callables watch every attempt; whatever they do, no call notices."""

from __future__ import annotations

import dataclasses
import logging
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from django.core.checks import run_checks
from django.core.exceptions import ImproperlyConfigured
from django.db import connection, transaction
from django.test import Client

from execution import hooks
from execution.errors import ErrorCode
from execution.hooks import Completed, Event, Failed, Invoking
from execution.hooks import logging as line_hook
from execution.hooks import metrics as number_hook
from execution.messages import CallContext
from execution.models import Call as CallRow
from tests.execution.hands import Hands, fails

if TYPE_CHECKING:
    from tests.execution.conftest import Call

pytestmark = pytest.mark.django_db

SEEN: list[Event] = []
Watch = Callable[..., None]


def see(event: Event) -> None:
    SEEN.append(event)


def burn(event: Event) -> None:
    raise RuntimeError("the pager is on fire")


def leave(event: Event) -> None:
    sys.exit(3)


def dawdle(event: Event) -> None:
    time.sleep(0.02)


def break_the_connection(event: Event) -> None:
    with connection.cursor() as cursor:
        cursor.execute("SELECT nothing FROM nowhere")


NOT_CALLABLE = "a text"
ME = "tests.execution.test_hooks"


@pytest.fixture
def watched(request: pytest.FixtureRequest, settings: Any, monkeypatch: pytest.MonkeyPatch) -> Iterator[Watch]:
    """Load hooks by their names in this file, or by dotted paths."""
    monkeypatch.setitem(sys.modules, ME, sys.modules[__name__])
    monkeypatch.setattr(hooks, "_hooks", None)
    monkeypatch.setattr(hooks, "_complained", {})
    if "transactional_db" not in request.fixturenames:  # nothing that such a test does is ever committed
        monkeypatch.setattr("execution.hooks.transaction.on_commit", lambda act, **_: act())
    SEEN.clear()

    def load(*names: str) -> None:
        settings.PLACET_HOOKS = [name if "." in name else f"{ME}.{name}" for name in names]
        hooks.load()

    yield load
    SEEN.clear()


@pytest.fixture
def hands(lab: Any, monkeypatch: pytest.MonkeyPatch) -> Hands:
    fake = Hands()
    monkeypatch.setattr("execution.pipeline.perform.runtime_for", lambda tool: fake)
    return fake


def test_a_call_that_works_is_seen_beginning_and_ending(watched: Watch, call: Call, hands: Hands) -> None:
    watched("see")
    outcome = call("Echo", value="v", call_id="mine-1")
    began, ended = SEEN
    assert type(began) is Invoking
    assert (began.tool_id, began.agent, began.door, began.attempt) == (outcome.tool_id, "tester", "test", 1)
    assert (began.call, began.call_id) == (str(outcome.id), "mine-1")
    assert isinstance(ended, Completed)
    assert ended.duration_ms == outcome.duration_ms
    assert (ended.call, ended.attempt) == (began.call, 1)


def test_a_call_that_fails_is_seen_with_its_code_and_never_with_its_text(
    watched: Watch, call: Call, hands: Hands
) -> None:
    watched("see")
    hands.does = fails(ErrorCode.TIMEOUT, "the password is hunter2")
    call("Echo", value="hunter2", call_id="id-of-hunter2", context=CallContext(secrets={"one": "id-of-hunter2"}))
    _, ended = SEEN
    assert isinstance(ended, Failed)
    assert ended.error == "timeout"
    assert "hunter2" not in repr(SEEN)


def test_a_queued_call_is_seen_with_the_door_it_came_by_and_each_attempt_has_its_number(
    watched: Watch, call: Call, hands: Hands, unsent: list[Any]
) -> None:
    from execution.pipeline.perform import perform

    watched("see")
    hands.does = fails(ErrorCode.EXECUTION_FAILED, can_retry=True, is_sent=False)
    id = call("Flaky", ledger="nowhere", fails=0).id
    for _ in range(2):
        CallRow.objects.filter(pk=id).update(not_before=None)
        perform(id)
    ends = [event for event in SEEN if isinstance(event, Failed)]
    assert [event.attempt for event in ends] == [1, 2]
    assert {event.door for event in SEEN} == {"test"}
    assert len(SEEN) == 4


@pytest.mark.parametrize(("tool", "is_repeated"), [("SlowButSafe", True), ("Slow", False)])
def test_an_attempt_that_loses_its_worker_is_seen_ending_once(
    watched: Watch,
    call: Call,
    hands: Hands,
    unsent: list[Any],
    caplog: pytest.LogCaptureFixture,
    tool: str,
    is_repeated: bool,
) -> None:
    from execution import calls
    from execution.pipeline import perform
    from execution.runtimes.base import RunResult
    from execution.sweeping import sweep
    from registry.clock import Later

    watched("see")
    caplog.set_level(logging.INFO, logger="placet.telemetry")
    row = CallRow.objects.get(pk=call(tool, ledger="nowhere", seconds=0).id)
    cleared = perform.clear(row)
    assert cleared is not None
    lost = calls.claim(row, cleared.tool, cleared.agent)
    assert lost is not None
    perform.enter(lost)
    CallRow.objects.filter(pk=row.pk).update(lease_until=Later(-1))
    sweep()
    sweep()
    assert calls.succeed(lost, RunResult(value="done")) is None  # it comes back after all
    began, ended = SEEN
    assert isinstance(ended, Failed)
    assert (type(began), began.attempt, ended.attempt, ended.error) == (Invoking, 1, 1, "outcome_unknown")
    assert ended.duration_ms > 0
    lines = [record.facts for record in caplog.records if record.name == "placet.telemetry"]  # type: ignore[attr-defined]
    assert [(line["tool_code"], line["attempt"], line["retryable"]) for line in lines] == [
        ("outcome_unknown", 1, is_repeated)
    ]


def test_an_event_cannot_be_changed(watched: Watch, call: Call, hands: Hands) -> None:
    watched("see")
    call("Echo", value="v")
    with pytest.raises(dataclasses.FrozenInstanceError):
        SEEN[0].attempt = 7  # type: ignore[misc]


def test_a_call_that_never_reaches_its_tool_is_not_seen(watched: Watch, call: Call) -> None:
    watched("see")
    call("Nothing")
    call("Echo", wrong="argument")
    assert SEEN == []


@pytest.mark.parametrize("hook", ["burn", "leave"])
def test_a_hook_that_fails_is_logged_and_fails_neither_the_call_nor_the_next_hook(
    watched: Watch, call: Call, hands: Hands, caplog: pytest.LogCaptureFixture, hook: str
) -> None:
    watched(hook, "see")
    assert call("Echo", value="v").is_success
    assert len(SEEN) == 2
    told = [record for record in caplog.records if record.name == "execution.hooks"]
    assert [record.levelname for record in told] == ["WARNING", "WARNING"]
    assert f"{ME}.{hook} failed at Invoking of Lab.Echo" in told[0].getMessage()


def test_a_hook_that_misuses_the_database_cannot_undo_the_calls_end(
    transactional_db: None, watched: Watch, call: Call, hands: Hands
) -> None:
    watched("break_the_connection", "see")
    with transaction.atomic():  # as where the late answer of a tool is taken
        outcome = call("Echo", value="v")
        assert SEEN == []
    assert outcome.is_success
    assert [type(event) for event in SEEN] == [Invoking, Completed]
    assert CallRow.objects.get(pk=outcome.id).state == "succeeded"


def test_a_slow_hook_is_complained_about_once_in_a_while(
    watched: Watch, call: Call, hands: Hands, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(hooks, "SLOW", 0.01)
    watched("dawdle")
    assert call("Echo", value="v").is_success
    assert [record.getMessage()[:47] for record in caplog.records if "took" in record.getMessage()] == [
        f"the hook {ME}.dawdle took"[:47]
    ]


def test_a_hook_that_is_slow_to_import_is_logged(
    watched: Watch, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("execution.hooks.finding.SLOW_IMPORT", -1.0)
    watched("see")
    assert f"the hook {ME}.see took 0.0 s to import" in caplog.text


@pytest.mark.parametrize(
    ("path", "complaint"),
    [
        ("nowhere.at.all", "cannot be imported: No module named 'nowhere'"),
        (f"{ME}.missing", "cannot be imported"),
        (f"{ME}.NOT_CALLABLE", "neither callable nor a module with `observe`"),
        ("execution.hooks.events", "neither callable nor a module with `observe`"),
        ("nodots", "cannot be imported"),
    ],
)
def test_a_wrong_path_is_an_error_before_anything_is_served(
    watched: Watch, settings: Any, path: str, complaint: str
) -> None:
    settings.PLACET_HOOKS = [path]
    with pytest.raises(ImproperlyConfigured, match=complaint):
        hooks.load()
    (error,) = [found for found in run_checks() if found.id == "execution.E001"]
    assert path in error.msg
    assert complaint in error.msg


@pytest.fixture
def exiting(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A module that exits when it is imported."""
    (tmp_path / "exiting_hook.py").write_text("raise SystemExit(3)")
    monkeypatch.syspath_prepend(tmp_path)
    return "exiting_hook"


def test_a_hook_that_exits_when_imported_is_wrong_like_any_other(
    watched: Watch, settings: Any, call: Call, hands: Hands, exiting: str
) -> None:
    settings.PLACET_HOOKS = [exiting, f"{ME}.see"]
    with pytest.raises(ImproperlyConfigured, match="exiting_hook, which cannot be imported: it exits with 3"):
        hooks.load()
    assert call("Echo", value="v").is_success  # in a process that loads late
    assert len(SEEN) == 2


def test_the_product_does_not_start_with_a_wrong_path(tmp_path: Path) -> None:
    environment = {**os.environ, "PLACET_HOME": str(tmp_path), "PLACET_HOOKS": "my_company.watch"}
    ran = subprocess.run(
        [sys.executable, "-m", "config.prepare", "http://127.0.0.1:1"],
        env=environment | {"DJANGO_SETTINGS_MODULE": "config.settings.local"},
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert ran.returncode == 1
    assert ran.stderr.splitlines() == [
        "PLACET_HOOKS names my_company.watch, which cannot be imported: No module named 'my_company'"
    ]
    assert not (tmp_path / "placet.sqlite3").exists()


def test_a_process_that_loads_late_leaves_out_what_is_wrong_and_says_so_once(
    watched: Watch, settings: Any, call: Call, hands: Hands, caplog: pytest.LogCaptureFixture
) -> None:
    settings.PLACET_HOOKS = ["nowhere.at.all", f"{ME}.see"]
    assert call("Echo", value="v").is_success
    assert call("Echo", value="w").is_success
    assert len(SEEN) == 4
    assert [record.levelname for record in caplog.records if "nowhere" in record.getMessage()] == ["ERROR"]


def test_without_hooks_nothing_is_made(
    watched: Watch, call: Call, hands: Hands, monkeypatch: pytest.MonkeyPatch
) -> None:
    watched()

    def never(*_: Any) -> None:
        raise AssertionError("an event was made for nobody")

    monkeypatch.setattr(hooks, "_tell", never)
    assert call("Echo", value="v").is_success


def test_the_logging_hook_writes_one_line_per_event(
    watched: Watch, call: Call, hands: Hands, caplog: pytest.LogCaptureFixture
) -> None:
    watched("execution.hooks.logging")
    caplog.set_level(logging.INFO, logger=line_hook.LOGGER.name)
    call("Echo", value="v")
    hands.does = fails(ErrorCode.TIMEOUT)
    call("Echo", value="v")
    told = [record for record in caplog.records if record.name == "placet.hooks"]
    assert [(record.levelname, record.getMessage().split()[0]) for record in told] == [
        ("INFO", "invoking"),
        ("INFO", "completed"),
        ("INFO", "invoking"),
        ("WARNING", "failed"),
    ]
    assert "failed (timeout) after" in told[3].getMessage()
    assert " for tester by test, call " in told[3].getMessage()
    assert isinstance(told[3].event, Failed)  # type: ignore[attr-defined]


def test_the_metrics_hook_adds_what_telemetry_does_not_count(
    watched: Watch, call: Call, hands: Hands, client: Client
) -> None:
    watched("execution.hooks.metrics")
    before = number_hook.numbers().get("Lab.Echo", number_hook.Numbers())
    call("Echo", value="v")
    call("Echo", value="v")
    hands.does = fails(ErrorCode.TIMEOUT)
    call("Echo", value="v")
    after = number_hook.numbers()["Lab.Echo"]
    assert after.invocations - before.invocations == 3
    assert after.successes - before.successes == 2
    assert after.errors["timeout"] - before.errors.get("timeout", 0) == 1
    assert after.failures - before.failures == 1
    assert after.fastest is not None
    assert after.slowest is not None
    assert after.average is not None
    assert 0 < after.fastest <= after.average <= after.slowest
    text = client.get("/metrics").content.decode()
    for name in (
        "invocations_total",
        "seconds_total",
        "duration_min_seconds",
        "duration_max_seconds",
        "duration_avg_seconds",
    ):
        assert f'placet_tool_{name}{{tool="Lab.Echo"}}' in text
    assert f'placet_tool_success_ratio{{tool="Lab.Echo"}} {after.success_rate}' in text


def test_rates_are_shown_only_where_the_metrics_hook_is_wanted(watched: Watch, call: Call, client: Client) -> None:
    watched("see")
    call("Echo", value="v")
    assert "placet_tool_success_ratio" not in client.get("/metrics").content.decode()
