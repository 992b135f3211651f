"""Scope: which events evidence is wanted about, one call or whatever the filters of the audit export find."""

from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

import django_filters
from django.db.models import Q, QuerySet

from audit import search
from audit.api.filters import EventFilter
from audit.models import Event
from execution.models import Call
from execution.viewer import Viewer


class ScopeError(Exception):
    """A filter that does not exist or cannot be read: which, and why."""

    def __init__(self, field: str, reason: str) -> None:
        super().__init__(f"{field}: {reason}")
        self.field, self.reason = field, reason


class ScopeFilter(EventFilter):
    """The filters of the export, and the beginning of an actor's name, by which pages narrow their lists."""

    actor_prefix = django_filters.CharFilter(field_name="actor", lookup_expr="startswith")


NAMES = (*ScopeFilter.base_filters, "search")


@dataclass(frozen=True, slots=True, kw_only=True)
class Scope:
    """One call with what people said about it, or a range of events."""

    call: UUID | None = None
    filters: dict[str, str] = field(default_factory=dict)

    def events(self, viewer: Viewer) -> QuerySet[Event]:
        """Those of its events that the viewer may see; raises ScopeError for filters that cannot be read."""
        if self.call is None:
            return self._found(viewer.events())
        row = Call.objects.only("approval").get(pk=self.call)
        wanted = Q(subject_kind="call", subject_id=str(self.call))
        if row.approval_id:
            wanted |= Q(subject_kind="approval", subject_id=str(row.approval_id))
        return viewer.events().filter(wanted)

    def told(self) -> dict[str, Any]:
        return {"call": str(self.call)} if self.call else {"filters": dict(sorted(self.filters.items()))}

    def _found(self, events: QuerySet[Event]) -> QuerySet[Event]:
        for name, value in self.filters.items():
            if name not in NAMES:
                raise ScopeError(name, f"Not known here; there are {', '.join(sorted(NAMES))}.")
            if not isinstance(value, str) or "\0" in value:
                raise ScopeError(name, "Give a text without null characters.")
            if len(value) > search.MAX_TEXT:
                raise ScopeError(name, f"At most {search.MAX_TEXT} characters.")
        narrowed = ScopeFilter({name: value for name, value in self.filters.items() if name != "search"}, events)
        if not narrowed.is_valid():
            name, reasons = next(iter(narrowed.errors.items()))
            raise ScopeError(name, str(reasons[0]))
        return search.matching(narrowed.qs, self.filters.get("search", ""))
