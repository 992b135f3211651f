"""Finding: the newest calls or events that a query asks for, a page at a time, within the time a person waits."""

import time
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

from django.db.models import Max, QuerySet

from audit import search
from audit.api.filters import EventFilter
from audit.models import Event
from execution import callsearch
from execution.models import Call
from execution.portal.query import ONLY_EVENTS, Query, QueryError, moment_of
from execution.scope import OF_CALL, FilterError, Scope
from execution.viewer import Viewer

PER_PAGE = 50
STRETCH = 20_000  # events that are looked through at once
MANY = 5_000  # events of one trace or subject that are shown
PATIENCE = 0.15  # seconds after which a search through events is handed to the person

_HEAVY = ("input", "result", "decision", "warnings", "sealed", "sealed_answer")
_OF_EVENT = {
    "event": "event",
    "actor": "actor_prefix",
    "kind": "subject_kind",
    "subject": "subject_id",
    "outcome": "outcome",
    "trace": "trace_id",
}
_OF_CALL = {"agent": "agent", "tool": "tool_id", "door": "door", "id": "id", "trace": "trace_id"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """One page, newest first."""

    rows: list[Any]
    older: str = ""  # where the next page begins; empty if this is the last one
    looked_to: int = 0  # the oldest event that was looked at, if the search stopped before the end


def filters_of(query: Query, place: str, now: datetime) -> dict[str, str]:
    """The query as the filters of a pack of evidence; times that were relative become fixed."""
    found = {name: moment_of(value, now, is_end=name == "until") for name, value in _moments(query)}
    times = {name: at.astimezone(UTC).isoformat() for name, at in found.items() if at is not None}
    of_calls = {target: value for name, target in _OF_CALL.items() for value in query.values(name)}
    if states := query.values("state"):
        of_calls["state"] = ",".join(states)
    words = " ".join(query.words)
    if place == "calls":
        _refuse_events_only(query)
        of_calls |= times | ({"search": words} if words else {})
        return {f"{OF_CALL}{name}": value for name, value in (of_calls or {"search": ""}).items()}
    of_events = {target: value for name, target in _OF_EVENT.items() for value in query.values(name)}
    of_calls.pop("trace_id", None)
    told = of_events | times | {f"{OF_CALL}{name}": value for name, value in of_calls.items()}
    return told | ({"search": words} if words else {})


def find_calls(query: Query, viewer: Viewer, now: datetime, older: str = "") -> Found:
    """Calls, found by every filter but those that only events have."""
    filters = filters_of(query, "calls", now)
    wanted = {name.removeprefix(OF_CALL): value for name, value in filters.items() if name != f"{OF_CALL}search"}
    calls = callsearch.holding(_narrowed(viewer.calls(), wanted), query.words)
    if older:
        calls = calls.filter(pk__lt=_uuid(older))
    rows = list(calls.select_related("agent").defer(*_HEAVY).order_by("-id")[: PER_PAGE + 1])
    return Found(rows=rows[:PER_PAGE], older=str(rows[PER_PAGE - 1].pk) if len(rows) > PER_PAGE else "")


def find_events(query: Query, viewer: Viewer, now: datetime, older: str = "") -> Found:
    """Events, looked for from the newest on, stretch by stretch, until a page is full or the person waits too long."""
    filters = filters_of(query, "events", now)
    filters.pop("search", None)
    try:
        events = Scope(filters=filters).events(viewer)
    except FilterError as error:
        raise QueryError(str(error)) from error
    for word in query.words:
        events = search.holding(events, word)
    top = _number(older) if older else (Event.objects.aggregate(newest=Max("id"))["newest"] or 0) + 1
    until = time.monotonic() + PATIENCE
    keys = _keys(filters)
    if keys is not None:
        events = events.filter(pk__in=keys)
    rows: list[Event] = []
    while top > 1 and len(rows) <= PER_PAGE:
        bottom = max(1, top - STRETCH) if keys is None else 1
        stretch = events.filter(id__lt=top, id__gte=bottom).order_by("-id")
        rows += stretch[: PER_PAGE + 1 - len(rows)]
        top = bottom
        if time.monotonic() > until and len(rows) <= PER_PAGE:
            return Found(rows=rows, older=str(top) if top > 1 else "", looked_to=top if top > 1 else 0)
    more = str(rows[PER_PAGE - 1].pk) if len(rows) > PER_PAGE else ""
    return Found(rows=rows[:PER_PAGE], older=more)


def _keys(filters: dict[str, str]) -> list[int] | None:
    """The events of one trace or subject, read from its index: told to sort, databases walk the whole table instead."""
    for names in (("trace_id",), ("subject_kind", "subject_id")):
        if all(name in filters for name in names):
            events = EventFilter({name: filters[name] for name in names}, Event.objects.order_by()).qs
            return list(events.values_list("pk", flat=True)[:MANY])
    return None


def _moments(query: Query) -> list[tuple[str, str]]:
    return [(name, value) for name in ("since", "until") for value in query.values(name)]


def _narrowed(calls: QuerySet[Call], wanted: dict[str, str]) -> QuerySet[Call]:
    try:
        return callsearch.narrowed(calls, wanted)
    except FilterError as error:
        raise QueryError(str(error)) from error


def _refuse_events_only(query: Query) -> None:
    for term in query.terms:
        if term.name in ONLY_EVENTS:
            raise QueryError(f"Only events have the filter “{term.name}”: search events instead of calls.")


def _uuid(text: str) -> UUID:
    try:
        return UUID(text)
    except ValueError:
        raise QueryError("The address of this page is broken; search again.") from None


def _number(text: str) -> int:
    if not (text.isascii() and text.isdecimal() and len(text) < 19):
        raise QueryError("The address of this page is broken; search again.")
    return int(text)
