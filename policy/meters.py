"""Limits: how often one agent may call one tool. Exact, because each call is counted in its own transaction."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.db import connection
from django.db.models.functions import Now

from policy.decision import Limits
from policy.models import Meter
from policy.question import Question

_LENGTHS = {Meter.Window.MINUTE: timedelta(minutes=1), Meter.Window.DAY: timedelta(days=1)}
_WORDS = {Meter.Window.MINUTE: "a minute", Meter.Window.DAY: "a day"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Reached:
    """A limit that leaves no room for one more call, and when there may be room again."""

    limit: str  # "30 calls a minute"
    retry_after: float  # seconds


def count(question: Question, limits: Limits, *, open_calls: Callable[[], int]) -> Reached | None:
    """Count one more call, already recorded in this transaction; if a limit is reached, that one is told.

    Callers of the same agent and tool wait here for each other until they have committed or given up.
    """
    assert connection.in_atomic_block
    agent, tool = question.caller.agent_id, f"{question.tool.toolkit}.{question.tool.name}"
    meters = _held(agent, tool)
    now = Meter.objects.filter(agent=agent, tool=tool).values_list(Now(), flat=True)[0]
    for window, limit in ((Meter.Window.MINUTE, limits.per_minute), (Meter.Window.DAY, limits.per_day)):
        meter = meters[window]
        _start_anew_if_over(meter, now)
        if limit is not None and meter.count >= limit:
            left = meter.started_at + _LENGTHS[window] - now
            return Reached(limit=f"{limit} calls {_WORDS[window]}", retry_after=max(left.total_seconds(), 1.0))
    if limits.at_once is not None and open_calls() > limits.at_once:
        return Reached(limit=f"{limits.at_once} calls at once", retry_after=1.0)
    for meter in meters.values():
        meter.count += 1
        meter.save(update_fields=["started_at", "count"])
    return None


def _held(agent: int, tool: str) -> dict[str, Meter]:
    """Both meters, locked until the transaction ends; made when they are first needed."""
    own = Meter.objects.select_for_update().filter(agent=agent, tool=tool)
    found = {meter.window: meter for meter in own.order_by("window")}
    if len(found) < len(_LENGTHS):
        new = [Meter(agent_id=agent, tool=tool, window=window, started_at=Now()) for window in _LENGTHS]
        Meter.objects.bulk_create(new, ignore_conflicts=True)
        found = {meter.window: meter for meter in own.order_by("window")}
    return found


def _start_anew_if_over(meter: Meter, now: datetime) -> None:
    if now - meter.started_at >= _LENGTHS[Meter.Window(meter.window)]:
        meter.started_at, meter.count = now, 0
