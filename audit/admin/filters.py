"""Filters over events whose choices are read from the indexes, not from every row."""

from typing import Any

from django.db.models import QuerySet
from django.http import HttpRequest
from unfold.contrib.filters.admin import DropdownFilter, TextFilter

from audit.models import Event
from audit.visible import visible

MAX_CHOICES = 200


def names_of(field: str) -> list[str]:
    """The different values of an indexed column, each found by one step in its index."""
    found: list[str] = []
    last = ""
    while len(found) < MAX_CHOICES:
        value = Event.objects.filter(**{f"{field}__gt": last}).order_by(field).values_list(field, flat=True).first()
        if value is None:
            break
        found.append(value)
        last = value
    return found


class _Exactly(DropdownFilter):
    field = ""

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        return [(name, visible(name)) for name in names_of(self.field)]

    def queryset(self, request: HttpRequest, queryset: QuerySet[Event]) -> QuerySet[Event]:
        return queryset.filter(**{self.field: self.value()}) if self.value() else queryset


class EventFilter(_Exactly):
    title, parameter_name, field = "event", "event", "event"


class SubjectKindFilter(_Exactly):
    title, parameter_name, field = "kind of subject", "subject_kind", "subject_kind"


class OutcomeFilter(_Exactly):
    """Outcomes have no index, and are few."""

    title, parameter_name, field = "outcome", "outcome", "outcome"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        return [(name, name) for name in ("ok", "failed", "refused")]


class ActorFilter(TextFilter):
    """The actor as events spell it, from its beginning: "user:" finds every person."""

    title, parameter_name = "actor", "actor"

    def queryset(self, request: HttpRequest, queryset: QuerySet[Event]) -> QuerySet[Event]:
        value = (self.value() or "").replace("\0", "")[:255]
        return queryset.filter(actor__startswith=value) if value else queryset


class SubjectFilter(TextFilter):
    """One subject, by its whole id."""

    title, parameter_name = "subject", "subject_id"

    def queryset(self, request: HttpRequest, queryset: QuerySet[Event]) -> QuerySet[Event]:
        value = (self.value() or "").replace("\0", "")[:255]
        return queryset.filter(subject_id=value) if value else queryset
