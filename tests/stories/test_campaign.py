"""The campaign: many calls of many kinds while processes die at random; afterwards every invariant holds."""

from __future__ import annotations

import json
import os
import random
import signal
import threading
import time
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from http.client import HTTPException
from typing import Any, NamedTuple

import pytest

from tests.stories.laboratory import LEASE, SWEEP, Laboratory, Reply, lines, send_signal
from tests.stories.product import wait_until

pytestmark = pytest.mark.story

CALLS = 150
CALLERS = 6
KILLS = 10
SETTLED = 2 * (LEASE + SWEEP) + 30  # seconds after which no call may still be open
MOST_RUNS = {"Ring": 1, "Slow": 1, "RingInline": 3, "SlowButSafe": 3, "Flaky": 5}
MORE: dict[str, dict[str, Any]] = {"Slow": {"seconds": 0.2}, "SlowButSafe": {"seconds": 0.2}, "Flaky": {"fails": 1}}
ENDS = {"succeeded", "failed", "timed_out", "unknown"}


class Asked(NamedTuple):
    """One call of the campaign: what was asked, and every answer that came back."""

    tool: str
    call_id: str
    ledger: Any
    replies: list[Reply]


def test_nothing_is_lost_or_doubled_while_processes_die_at_random(laboratory: Laboratory) -> None:
    seed = int(os.environ.get("PLACET_TEST_SEED") or random.randrange(10**6))
    print(f"PLACET_TEST_SEED={seed}")  # noqa: T201  shown when the test fails
    chance = random.Random(seed)
    asked = [plan(laboratory, chance, number) for number in range(CALLS)]
    faults = [chance.choice(FAULTS) for _ in range(KILLS)]
    faults[: len(RARE)] = RARE
    chance.shuffle(faults)
    pauses = [chance.uniform(0.3, 1.0) for _ in faults]
    waiting = iter(asked)
    lock = threading.Lock()

    def call_on() -> None:
        while True:
            with lock:
                one = next(waiting, None)
            if one is None:
                return
            insist(laboratory, one)

    callers = [threading.Thread(target=call_on) for _ in range(CALLERS)]
    for caller in callers:
        caller.start()
    for pause, fault in zip(pauses, faults, strict=True):
        time.sleep(pause)
        fault(laboratory, chance)
    for caller in callers:
        caller.join(120)
    assert not any(caller.is_alive() for caller in callers)
    assert wait_until(laboratory.is_healthy, 20)
    states = settled_states(laboratory)
    check_rows(laboratory, asked, states)
    check_events(laboratory)
    for one in asked:
        assert lines(one.ledger) <= MOST_RUNS[one.tool], (seed, one.tool, one.call_id)
        if states[one.call_id] == "succeeded":
            assert lines(one.ledger) >= 1
    unknown = {one.tool for one in asked if states[one.call_id] == "unknown"}
    assert unknown <= {"Ring", "Slow"}


def plan(laboratory: Laboratory, chance: random.Random, number: int) -> Asked:
    return Asked(chance.choice(list(MOST_RUNS)), f"campaign-{number}", laboratory.ledger(f"campaign-{number}"), [])


def insist(laboratory: Laboratory, one: Asked) -> None:
    """As a good client does: the same call_id until there is an answer."""
    more = MORE.get(one.tool, {})
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        with suppress(OSError, HTTPException):
            reply = laboratory.oxp(one.tool, call_id=one.call_id, ledger=str(one.ledger), **more)
            one.replies.append(reply)
            if reply.status == 200:
                return
            assert reply.code in ("unavailable", "still_running"), reply
        time.sleep(0.1)


def kill_child(laboratory: Laboratory, chance: random.Random) -> None:
    leader = laboratory.leader("celery")
    children = [pid for pid, parent in laboratory.processes("celery").items() if parent == leader]
    if children:
        send_signal(chance.choice(children), signal.SIGKILL)


def freeze_child(laboratory: Laboratory, chance: random.Random) -> None:
    leader = laboratory.leader("celery")
    children = [pid for pid, parent in laboratory.processes("celery").items() if parent == leader]
    if children:
        frozen = chance.choice(children)
        send_signal(frozen, signal.SIGSTOP)
        threading.Timer(LEASE * 2, send_signal, (frozen, signal.SIGCONT)).start()


def kill_worker(laboratory: Laboratory, chance: random.Random) -> None:
    laboratory.kill("celery")


def stop_worker(laboratory: Laboratory, chance: random.Random) -> None:
    send_signal(laboratory.leader("celery"), signal.SIGTERM)


def kill_web(laboratory: Laboratory, chance: random.Random) -> None:
    laboratory.kill("granian")


Fault = Callable[[Laboratory, random.Random], None]
FAULTS: list[Fault] = [kill_child, kill_child, freeze_child]
RARE: list[Fault] = [kill_worker, stop_worker, kill_web, kill_web]  # often in a row, and the supervisor gives up


def settled_states(laboratory: Laboratory) -> dict[str, str]:
    """The state of each call once none is open any more."""
    found: dict[str, str] = {}

    def look() -> bool:
        rows = laboratory.query("SELECT call_id, state FROM execution_call WHERE call_id LIKE 'campaign-%%'")
        found.clear()
        found.update(rows)
        return set(found.values()) <= ENDS

    assert wait_until(look, SETTLED), Counter(found.values())
    return found


def check_rows(laboratory: Laboratory, asked: list[Asked], states: dict[str, str]) -> None:
    """One row per call_id; whoever was told an end was told the end that is recorded."""
    rows = laboratory.query(
        "SELECT call_id, count(*) FROM execution_call WHERE call_id LIKE 'campaign-%%' GROUP BY call_id"
    )
    assert dict(rows) == dict.fromkeys([one.call_id for one in asked], 1)
    results = dict(laboratory.query("SELECT call_id, result FROM execution_call WHERE call_id LIKE 'campaign-%%'"))
    for one in asked:
        ends = [reply.body["result"] for reply in one.replies if reply.status == 200]
        assert len(ends) == 1, one
        assert ends[0]["success"] == (states[one.call_id] == "succeeded"), one
        if ends[0]["success"]:
            assert json.loads(results[one.call_id]) == ends[0]["value"]


def check_events(laboratory: Laboratory) -> None:
    """Every chain counts from one without a gap; every claim has its event, every attempt that ended its row."""
    for subject, number, first, last in laboratory.query(
        "SELECT subject_id, count(*), min(seq), max(seq) FROM audit_event"
        " WHERE subject_kind = 'call' GROUP BY subject_id"
    ):
        assert (first, last) == (1, number), subject
    started = dict(
        laboratory.query(
            "SELECT subject_id, count(*) FROM audit_event WHERE event = 'call.started' GROUP BY subject_id"
        )
    )
    fences = laboratory.query("SELECT id, fence FROM execution_call")
    attempts = dict(laboratory.query("SELECT call_id, count(*) FROM execution_attempt GROUP BY call_id"))
    for id, fence in fences:
        assert started.get(dashed(id), 0) == attempts.get(id, 0) == fence


def dashed(id: Any) -> str:
    text = str(id)
    return text if "-" in text else f"{text[:8]}-{text[8:12]}-{text[12:16]}-{text[16:20]}-{text[20:]}"
