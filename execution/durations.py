"""Durations: where the time of a call went, as spans that can be drawn to one scale."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime

from audit.models import Event
from execution.models import Attempt

WIDTH = 1_000  # units of the drawing
LEAST = 4  # units below which nothing would be seen

# What begins with an event, and is over with the next one that begins or ends anything.
_BEGINS = {
    "call.awaiting_approval": ("people", "Waiting for people"),
    "call.queued": ("queue", "In the queue"),
    "call.approved": ("queue", "In the queue"),
    "call.requeued": ("queue", "In the queue again"),
    "call.retry_scheduled": ("queue", "Waiting for another attempt"),
    "call.started": ("run", "Running"),
    "call.waiting_callback": ("tool", "Waiting for the tool's answer"),
}
_ENDS = frozenset(
    {
        "call.succeeded",
        "call.failed",
        "call.timed_out",
        "call.cancelled",
        "call.denied",
        "call.rejected",
        "call.expired",
        "call.unknown",
    }
)


Stretch = tuple[str, str, datetime, datetime, bool]  # kind, label, from, to, whether it goes on


@dataclass(frozen=True, slots=True, kw_only=True)
class Span:
    """One stretch of a call; places and widths are in thousandths of the whole."""

    kind: str
    label: str
    milliseconds: float
    x: int
    width: int
    is_open: bool = False

    @property
    def title(self) -> str:
        return f"{self.label}, so far" if self.is_open else self.label


def spans_of(events: Iterable[Event], now: datetime) -> tuple[Span, ...]:
    """The stretches between the events of one call, in order; the last one goes on until now if the call does."""
    found: list[Stretch] = []
    under_way: tuple[str, str, datetime] | None = None
    first = last = None
    for event in events:
        first, last = first or event.at, event.at
        if event.event not in _BEGINS and event.event not in _ENDS:
            continue
        if under_way is not None:
            found.append((*under_way, event.at, False))
        under_way = (*_named(event.event, found), event.at) if event.event in _BEGINS else None
    if first is None or last is None:
        return ()
    if under_way is not None:
        found.append((*under_way, max(now, last), True))
    return _drawn(found, first, last)


def spans_of_attempts(received: datetime, attempts: Iterable[Attempt]) -> tuple[Span, ...]:
    """The same from the rows of attempts, where all events were written at one moment."""
    found: list[Stretch] = []
    last = received
    for attempt in attempts:
        began = attempt.started_at or last
        label = "Waiting for another attempt" if found else "In the queue"
        found.append(("queue", label, last, began, False))
        found.append(("run", f"Attempt {attempt.number}", began, attempt.finished_at, False))
        last = attempt.finished_at
    return _drawn(found, received, last)


def _drawn(found: list[Stretch], first: datetime, last: datetime) -> tuple[Span, ...]:
    end = max([last, *(each[3] for each in found)])
    whole = max((end - first).total_seconds(), 1e-6)
    return tuple(_span(each, first, whole) for each in found)


def _named(event: str, before: list[Stretch]) -> tuple[str, str]:
    kind, label = _BEGINS[event]
    if kind != "run":
        return kind, label
    return kind, f"Attempt {1 + sum(1 for each in before if each[0] == 'run')}"


def _span(found: Stretch, first: datetime, whole: float) -> Span:
    kind, label, start, end, is_open = found
    lasted = max(0.0, (end - start).total_seconds())
    width = min(WIDTH, max(LEAST, round(WIDTH * lasted / whole)))
    x = min(WIDTH - width, max(0, round(WIDTH * (start - first).total_seconds() / whole)))
    return Span(kind=kind, label=label, milliseconds=lasted * 1_000, x=x, width=width, is_open=is_open)
