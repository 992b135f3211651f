"""Filters over events whose choices are read from the indexes, not from every row."""

from datetime import datetime, time
from typing import Any

from django.db.models import QuerySet
from django.http import HttpRequest
from django.utils.dateparse import parse_date, parse_time
from django.utils.timezone import make_aware
from unfold.contrib.filters.admin import DropdownFilter, RangeDateTimeFilter, TextFilter

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
        return [(name, name) for name in names_of(self.field) if visible(name) == name]

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


class SpanFilter(RangeDateTimeFilter):
    """From a day, or a time of it, to another, in UTC; what cannot be read narrows nothing."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.title = "time (UTC)"

    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        start, end = self._moment("from", time.min), self._moment("to", time.max)
        if start is not None:
            queryset = queryset.filter(**{f"{self.field_path}__gte": start})
        return queryset if end is None else queryset.filter(**{f"{self.field_path}__lte": end})

    def _moment(self, side: str, otherwise: time) -> datetime | None:
        day, hour = (self.used_parameters.get(f"{self.field_path}_{side}_{part}") or "" for part in (0, 1))
        try:
            date, clock = parse_date(day), parse_time(hour) if hour else otherwise
        except ValueError:
            return None
        return make_aware(datetime.combine(date, clock.replace(tzinfo=None))) if date and clock else None
