"""Workers and web processes that die, freeze or are told to go while calls run: nothing lost, nothing done twice."""

from __future__ import annotations

import os
import signal
import time
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from http.client import HTTPException
from pathlib import Path
from typing import Any

import pytest

from tests.stories.laboratory import LEASE, PUBLISH, SWEEP, Laboratory, Reply, lines
from tests.stories.product import wait_until
from tests.stories.restartable import is_running

pytestmark = pytest.mark.story

TAKEN_OVER = LEASE + SWEEP + 8  # seconds until another worker runs what one lost; the last part is for a slow machine


def running(laboratory: Laboratory, tool: str, seconds: float) -> tuple[Any, Path]:
    """A call whose tool has begun, and its ledger."""
    return running_together(laboratory, (tool, seconds))[0]


def running_together(laboratory: Laboratory, *tools: tuple[str, float]) -> list[tuple[Any, Path]]:
    """Calls that are under way at the same time."""
    ledgers = [laboratory.ledger() for _ in tools]
    calls = [
        laboratory.post(tool, ledger=str(ledger), seconds=seconds)
        for (tool, seconds), ledger in zip(tools, ledgers, strict=True)
    ]
    assert wait_until(lambda: all(lines(ledger) == 1 for ledger in ledgers)), [
        laboratory.get(call["id"]) for call in calls
    ]
    return list(zip(calls, ledgers, strict=True))


def test_a_killed_worker_process_costs_an_idempotent_call_one_more_attempt(laboratory: Laboratory) -> None:
    call, ledger = running(laboratory, "SlowButSafe", 1.0)
    os.kill(laboratory.runner_of(call["id"]), signal.SIGKILL)
    killed = time.monotonic()
    after = laboratory.ended(call["id"])
    assert time.monotonic() - killed < TAKEN_OVER + 1.0
    assert (after["state"], after["result"]) == ("succeeded", "done")
    assert [(attempt["number"], attempt["status"]) for attempt in after["attempts"]] == [(1, "lost"), (2, "succeeded")]
    assert lines(ledger) == 2
    started = ["call.received", "call.decided", "call.queued", "call.started"]
    assert laboratory.events(call["id"]) == [*started, "call.requeued", "call.started", "call.succeeded"]


def test_a_killed_worker_leaves_what_may_not_run_again_to_a_person(laboratory: Laboratory) -> None:
    (safe, safe_ledger), (call, ledger) = running_together(laboratory, ("SlowButSafe", 1.5), ("Slow", 1.5))
    laboratory.kill("celery")
    killed = time.monotonic()
    after = laboratory.ended(call["id"])
    assert time.monotonic() - killed < TAKEN_OVER
    assert (after["state"], after["error"]["code"]) == ("unknown", "outcome_unknown")
    assert laboratory.events(call["id"])[-2:] == ["call.started", "call.unknown"]
    assert laboratory.ended(safe["id"])["state"] == "succeeded"
    assert (lines(safe_ledger), lines(ledger)) == (2, 1), laboratory.events(safe["id"])


def are_gone(processes: list[int]) -> bool:
    return not any(map(is_running, processes))


def test_worker_processes_that_are_killed_while_they_wait_take_no_queue_along(laboratory: Laboratory) -> None:
    ledger = laboratory.ledger()
    assert laboratory.oxp("Ring", ledger=str(ledger)).status == 200
    leader = laboratory.leader("celery")
    children = [pid for pid, parent in laboratory.processes("celery").items() if parent == leader]
    for number, child in enumerate(children, 1):
        os.kill(child, signal.SIGKILL)
        assert wait_until(partial(are_gone, children[:number]))
    for _ in range(4):
        assert laboratory.oxp("Ring", ledger=str(ledger), timeout=30).status == 200
    assert lines(ledger) == 5
    assert laboratory.leader("celery") == leader
    laboratory.kill("celery")  # its clockwork was among them: the next story finds a whole worker


def test_a_worker_that_froze_and_wakes_too_late_is_refused(laboratory: Laboratory) -> None:
    call, ledger = running(laboratory, "SlowButSafe", 0.5)
    frozen = laboratory.runner_of(call["id"])
    os.kill(frozen, signal.SIGSTOP)
    try:
        after = laboratory.ended(call["id"])
    finally:
        os.kill(frozen, signal.SIGCONT)
    assert (after["state"], after["attempts"][-1]["number"]) == ("succeeded", 2)
    assert wait_until(lambda: laboratory.events(call["id"])[-1] == "call.stale_write"), laboratory.events(call["id"])
    assert laboratory.get(call["id"]) == after
    assert lines(ledger) == 2


def test_a_worker_told_to_go_finishes_what_it_runs(laboratory: Laboratory) -> None:
    call, ledger = running(laboratory, "Slow", 1.5)
    others = [laboratory.post("Ring", ledger=str(laboratory.ledger(f"others-{call['id']}"))) for _ in range(5)]
    os.kill(laboratory.leader("celery"), signal.SIGTERM)
    assert laboratory.ended(call["id"])["state"] == "succeeded"
    assert lines(ledger) == 1
    assert {laboratory.ended(other["id"])["state"] for other in others} == {"succeeded"}
    assert lines(laboratory.ledger(f"others-{call['id']}")) == 5


def test_calls_queued_while_no_worker_is_there_all_run_once(laboratory: Laboratory) -> None:
    ledger = laboratory.ledger()
    with laboratory.frozen_workers():
        queued = [laboratory.post("Ring", ledger=str(ledger)) for _ in range(20)]
        assert {laboratory.get(call["id"])["state"] for call in queued} == {"queued"}
        laboratory.kill("celery")
    after = [laboratory.ended(call["id"]) for call in queued]
    assert {call["state"] for call in after} == {"succeeded"}, [call for call in after if call["state"] != "succeeded"]
    assert lines(ledger) == 20


def test_a_message_that_comes_fifty_times_is_one_execution(laboratory: Laboratory) -> None:
    ledger = laboratory.ledger()
    with laboratory.frozen_workers():
        call = laboratory.post("Slow", ledger=str(ledger), seconds=0.2)
        laboratory.script(PUBLISH, call["id"], "50")
    assert laboratory.ended(call["id"])["state"] == "succeeded"
    after = laboratory.post("Ring", wait=30, ledger=str(laboratory.ledger()))  # queued behind all of them
    assert after["state"] == "succeeded"
    assert lines(ledger) == 1
    assert laboratory.events(call["id"]).count("call.started") == 1


def test_a_web_process_killed_before_it_answered_still_answers_the_same_call_id(laboratory: Laboratory) -> None:
    ledger, inline_ledger = laboratory.ledger(), laboratory.ledger()

    def ask() -> Reply:
        return laboratory.oxp("Slow", call_id="cut-off", ledger=str(ledger), seconds=1.5)

    def ask_inline() -> Reply:
        return laboratory.oxp("RingInline", call_id="inline", ledger=str(inline_ledger))

    answered = ask_inline()
    with ThreadPoolExecutor(1) as thread:
        cut_off = thread.submit(ask)
        assert wait_until(lambda: lines(ledger) == 1)
        laboratory.kill("granian")
        with pytest.raises((OSError, HTTPException)):
            cut_off.result(timeout=20)
    assert wait_until(laboratory.is_healthy)
    again = ask()
    assert (again.status, again.body["result"]["value"]) == (200, "done")
    assert ask().body == again.body
    assert ask_inline().body == answered.body
    assert (lines(ledger), lines(inline_ledger)) == (1, 1)
    assert laboratory.query("SELECT count(*) FROM execution_call WHERE call_id IN ('cut-off', 'inline')") == [(2,)]
