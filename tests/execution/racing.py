"""Threads that meet at a line and start together, and what must hold of approvals and calls whoever comes first."""

from __future__ import annotations

import threading
import time
from collections import defaultdict
from collections.abc import Callable, Iterable
from typing import Any
from uuid import UUID

from django.db import connection

ROUNDS = 50


def race(
    *runners: Callable[[int], Any], rounds: int = ROUNDS, before: Callable[[int], None] | None = None
) -> list[list[Any]]:
    """Each runner in a thread of its own, all of them starting each round together; their results, round by round.

    `before` is called with each round's number while all of them wait.
    """
    numbers = iter(range(rounds))
    ready = (lambda: before(next(numbers))) if before is not None else None
    start = threading.Barrier(len(runners), action=ready, timeout=60)
    results: list[list[Any]] = [[None] * len(runners) for _ in range(rounds)]
    failures: list[BaseException] = []

    def run(place: int) -> None:
        try:
            for number in range(rounds):
                start.wait()
                time.sleep((number + place) % 5 * 0.0003)  # none of them is always the first
                results[number][place] = runners[place](number)
        except BaseException as error:
            failures.append(error)
            start.abort()
        finally:
            connection.close()

    threads = [threading.Thread(target=run, args=(place,)) for place in range(len(runners))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(120)
    if failures:
        raise failures[0]
    return results


# How a call stands beside its approval; once that is used, the call goes its own way.
TOGETHER = {
    "pending": {"awaiting_approval"},
    "approved": {"queued"},
    "denied": {"denied"},
    "expired": {"expired"},
    "lapsed": {"expired"},
    "revoked": {"denied"},
    "withdrawn": {"denied", "cancelled"},
    "consumed": {"running", "succeeded", "failed", "queued", "denied", "cancelled", "unknown", "timed_out", "expired"},
}
LAST = {  # the event that every state of an approval is told by
    "pending": {"approval.asked", "approval.voted", "approval.reopened"},
    "expired": {"approval.expired"},
    "lapsed": {"approval.lapsed"},
}


def assert_consistent(ids: Iterable[UUID]) -> dict[UUID, tuple[str, str]]:
    """Approval and call agree in rows and events, nothing ran twice; each call's two states."""
    from audit.models import Event
    from execution.models import Attempt, Call
    from policy.models import Approval

    wanted = set(ids)
    chains: dict[tuple[str, str], list[tuple[int, str]]] = defaultdict(list)
    told = Event.objects.filter(subject_kind__in=("call", "approval")).order_by("seq")
    for kind, id, seq, event in told.values_list("subject_kind", "subject_id", "seq", "event"):
        chains[kind, id].append((seq, event))
    attempts: dict[UUID, int] = defaultdict(int)
    for call_id in Attempt.objects.values_list("call_id", flat=True):
        attempts[call_id] += 1
    states: dict[UUID, tuple[str, str]] = {}
    rows = {row.pk: row for row in Call.objects.filter(pk__in=wanted)}
    for approval in Approval.objects.filter(call__in=wanted):
        call = rows[approval.call]
        states[call.pk] = (approval.state, call.state)
        assert call.state in TOGETHER[approval.state], states[call.pk]
        assert (call.fence > 0) == (approval.state == "consumed")
        assert attempts[call.pk] <= call.fence
        for subject in (("call", str(call.pk)), ("approval", str(approval.pk))):
            found = chains[subject]
            assert [seq for seq, _ in found] == list(range(1, len(found) + 1)), found
        asked = [event for _, event in chains["approval", str(approval.pk)]]
        assert asked[-1] in LAST.get(approval.state, {f"approval.{approval.state}"}), (approval.state, asked)
        assert asked.count("approval.consumed") == (approval.state == "consumed")
        began = [event for _, event in chains["call", str(call.pk)]].count("call.started")
        assert began == call.fence
        if approval.decided_at is not None:
            assert approval.decided_at < approval.decide_by
    assert set(states) == wanted
    return states
