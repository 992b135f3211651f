"""Scope: which events evidence is wanted about, one call or whatever the filters of the audit export find."""

from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

import django_filters
from django.db.models import Exists, Q, QuerySet

from audit import search
from audit.api.filters import EventFilter
from audit.models import Event
from execution import callsearch
from execution.access import SubjectKey
from execution.callsearch import FilterError, check
from execution.models import Call
from execution.viewer import Viewer

__all__ = ["FilterError", "Scope"]

OF_CALL = "call."  # before the name of a filter over the calls that the events are about


class ScopeFilter(EventFilter):
    """The filters of the export, and the beginning of an actor's name, by which pages narrow their lists."""

    actor_prefix = django_filters.CharFilter(field_name="actor", lookup_expr="startswith")


NAMES = (*ScopeFilter.base_filters, "search", *(f"{OF_CALL}{name}" for name in callsearch.NAMES))


@dataclass(frozen=True, slots=True, kw_only=True)
class Scope:
    """One call with what people said about it, or a range of events."""

    call: UUID | None = None
    filters: dict[str, str] = field(default_factory=dict)

    def events(self, viewer: Viewer) -> QuerySet[Event]:
        """Those of its events that the viewer may see; raises FilterError for filters that cannot be read."""
        if self.call is None:
            return self._found(viewer)
        row = Call.objects.only("approval").get(pk=self.call)
        wanted = Q(subject_kind="call", subject_id=str(self.call))
        if row.approval_id:
            wanted |= Q(subject_kind="approval", subject_id=str(row.approval_id))
        return viewer.events().filter(wanted)

    def told(self) -> dict[str, Any]:
        return {"call": str(self.call)} if self.call else {"filters": dict(sorted(self.filters.items()))}

    def _found(self, viewer: Viewer) -> QuerySet[Event]:
        of_events: dict[str, str] = {}
        of_calls: dict[str, str] = {}
        for name, value in self.filters.items():
            check(name, value, NAMES)
            (of_calls if name.startswith(OF_CALL) else of_events)[name.removeprefix(OF_CALL)] = value
        text = of_events.pop("search", "")
        found = ScopeFilter(of_events, viewer.events())
        if not found.is_valid():
            name, reasons = next(iter(found.errors.items()))
            raise FilterError(name, str(reasons[0]))
        events = search.matching(found.qs, text)
        if not of_calls:
            return events
        calls = callsearch.narrowed(viewer.calls(), of_calls).order_by()
        return events.filter(
            (Q(subject_kind="call") & Q(Exists(calls.filter(pk=SubjectKey("call")))))
            | (Q(subject_kind="approval") & Q(Exists(calls.filter(approval=SubjectKey("approval")))))
        )
