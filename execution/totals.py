"""Counts the calls of hours and days that are over: sole writer of totals, and the arithmetic that reads them.

A span is counted only when no call of it can change any more, so a total is never wrong and never written twice.
Which calls belong to a span is read from their ids, which begin with the moment they were made at.
"""

import time
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime, timedelta
from math import log2
from uuid import UUID

from django.db import connection, transaction
from django.db.models import Q

from execution.models import OPEN, Call, CallTotal, State, TotalledSpan

HOUR, DAY = 1, 24
KEPT = {HOUR: timedelta(days=8), DAY: timedelta(days=92)}  # hours serve a week, days a quarter
MARGIN = timedelta(minutes=10)  # between a call's id and its row
AT_ONCE = 12  # spans in one look, so that a sweep stays short
LOOK_EVERY = 60.0
MOVING = (*OPEN, State.UNKNOWN)
OUTCOMES: dict[str, str] = {
    State.SUCCEEDED: "succeeded",
    State.FAILED: "failed",
    State.TIMED_OUT: "failed",
    State.UNKNOWN: "failed",
    State.DENIED: "refused",
    State.REJECTED: "refused",
    State.EXPIRED: "dropped",
    State.CANCELLED: "dropped",
}
STEPS = 8  # of a doubling: what a step says is right to about four percent

# Agent and tool, to how many calls ended how, and how many runs took how long.
Counted = dict[tuple[int, int | None], tuple[Counter[str], Counter[int]]]

_next_look = 0.0


def sweep() -> None:
    """Counts what is due, at most every minute; part of the sweeper's round."""
    global _next_look
    if time.monotonic() < _next_look:
        return
    if count_due() < AT_ONCE:
        _next_look = time.monotonic() + LOOK_EVERY


def count_due(now: datetime | None = None, most: int = AT_ONCE) -> int:
    """Counts so many spans that are over and have none of their calls open; how many there were."""
    now = now or datetime.now(UTC)
    done = 0
    for hours, kept in KEPT.items():
        oldest = floor(now - kept, hours)
        there = set(TotalledSpan.objects.filter(hours=hours, start__gte=oldest).values_list("start", flat=True))
        is_over = now - MARGIN - timedelta(hours=hours)
        due = [start for start in spans(oldest, now, hours) if start not in there and start <= is_over]
        while due:
            if done == most:
                return done
            some, due = due[: most - done], due[most - done :]
            done += _count_empty(some, hours) or sum(_count(start, hours) for start in some)
        if there:
            TotalledSpan.objects.filter(hours=hours, start__lt=oldest).delete()
    return done


def count_again(since: datetime, now: datetime | None = None) -> None:
    """Counts anew all that is over from this moment on, for calls that were written into the past.

    In the transaction that writes them: who counted without them finds these counts there, and keeps theirs to itself.
    """
    with transaction.atomic():
        if connection.vendor == "postgresql":  # elsewhere whoever writes is alone
            with connection.cursor() as cursor:
                cursor.execute(f'LOCK TABLE "{TotalledSpan._meta.db_table}" IN SHARE ROW EXCLUSIVE MODE')
        TotalledSpan.objects.filter(start__gte=floor(since, DAY)).delete()
        while count_due(now):
            continue


def floor(at: datetime, hours: int) -> datetime:
    """The beginning of the span that holds this moment, in UTC."""
    at = at.astimezone(UTC)
    return at.replace(hour=at.hour // hours * hours, minute=0, second=0, microsecond=0)


def spans(start: datetime, end: datetime, hours: int) -> list[datetime]:
    """Where each span between two moments begins."""
    found = []
    while start < end:
        found.append(start)
        start += timedelta(hours=hours)
    return found


def made_between(start: datetime, end: datetime) -> Q:
    """Calls and approvals that were made then, found by their primary key."""
    return Q(pk__gte=_first_id(start), pk__lt=_first_id(end))


def step_of(duration_ms: float) -> int:
    """A duration on a scale where each step is a little longer than the one before."""
    return round(STEPS * log2(max(duration_ms, 0.01)))


def quantile(steps: Mapping[int, int], part: float) -> float | None:
    """The duration, in milliseconds, that this part of all runs did not exceed."""
    left = part * sum(steps.values())
    for step in sorted(steps):
        left -= steps[step]
        if left <= 0:
            return float(2 ** (step / STEPS))
    return None


def _count_empty(starts: list[datetime], hours: int) -> int:
    """Notes at once that nothing happened in these spans; none of them if something did.

    Most of the time before a first call, of a night or of a weekend is so.
    """
    first, end = starts[0], starts[-1] + timedelta(hours=hours)
    if Call.objects.filter(made_between(first, end)).exists():
        return 0
    if CallTotal.objects.filter(span__start__gte=first, span__start__lt=end).exists():  # their calls may be gone
        return 0
    TotalledSpan.objects.bulk_create(
        [TotalledSpan(start=start, hours=hours) for start in starts], ignore_conflicts=True
    )
    return len(starts)


def _count(start: datetime, hours: int) -> int:
    """Reads first and writes then, for what is read can change no more: no lock is held while it is counted."""
    end = start + timedelta(hours=hours)
    parts = TotalledSpan.objects.filter(hours=HOUR, start__gte=start, start__lt=end)
    if hours == DAY and parts.count() == DAY:
        counted = _added_up(CallTotal.objects.filter(span__in=parts).order_by())
    else:
        calls = Call.objects.filter(made_between(start, end)).order_by()
        if calls.filter(state__in=MOVING).exists():
            return 0
        counted = _counted(calls.values_list("agent_id", "tool_id", "state", "duration_ms").iterator())
    with transaction.atomic():
        span, is_new = TotalledSpan.objects.get_or_create(start=start, hours=hours)
        if is_new:
            CallTotal.objects.bulk_create(
                CallTotal(span=span, agent_id=agent, tool_id=tool, durations=steps, **outcomes)
                for (agent, tool), (outcomes, steps) in counted.items()
            )
    return int(is_new)


def _counted(calls: Iterable[tuple[int, int | None, str, float | None]]) -> Counted:
    found: Counted = defaultdict(lambda: (Counter(), Counter()))
    for agent, tool, state, duration in calls:
        outcomes, steps = found[agent, tool]
        outcomes[OUTCOMES[state]] += 1
        if duration is not None:
            steps[step_of(duration)] += 1
    return found


def _added_up(hours: Iterable[CallTotal]) -> Counted:
    found: Counted = defaultdict(lambda: (Counter(), Counter()))
    for total in hours:
        outcomes, steps = found[total.agent_id, total.tool_id]
        for outcome in set(OUTCOMES.values()):
            outcomes[outcome] += getattr(total, outcome)
        for step, count in total.durations.items():
            steps[int(step)] += count
    return found


def _first_id(at: datetime) -> UUID:
    return UUID(int=int(at.timestamp() * 1000) << 80)
