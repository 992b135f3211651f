"""Durations: where the time of a call went, as spans that can be drawn to one scale."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime

from audit.models import Event

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
    found: list[tuple[str, str, datetime, datetime, bool]] = []
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
    end = max([last, *(each[3] for each in found)])
    whole = max((end - first).total_seconds(), 1e-6)
    return tuple(_span(each, first, whole) for each in found)


def _named(event: str, before: list[tuple[str, str, datetime, datetime, bool]]) -> tuple[str, str]:
    kind, label = _BEGINS[event]
    if kind != "run":
        return kind, label
    return kind, f"Attempt {1 + sum(1 for each in before if each[0] == 'run')}"


def _span(found: tuple[str, str, datetime, datetime, bool], first: datetime, whole: float) -> Span:
    kind, label, start, end, is_open = found
    lasted = max(0.0, (end - start).total_seconds())
    width = min(WIDTH, max(LEAST, round(WIDTH * lasted / whole)))
    x = min(WIDTH - width, max(0, round(WIDTH * (start - first).total_seconds() / whole)))
    return Span(kind=kind, label=label, milliseconds=lasted * 1_000, x=x, width=width, is_open=is_open)
