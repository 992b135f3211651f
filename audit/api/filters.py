"""How a list of events is narrowed and searched."""

from datetime import UTC, datetime
from typing import Any

import django_filters
from django import forms
from django.db.models import QuerySet
from django_filters.fields import IsoDateTimeField
from rest_framework.exceptions import ValidationError
from rest_framework.filters import SearchFilter
from rest_framework.request import Request

from audit import search
from audit.models import Event


class MomentField(IsoDateTimeField):
    """A moment that has a date in UTC too, in which databases compare: near both ends of the calendar not all have."""

    def to_python(self, value: Any) -> datetime | None:
        at: datetime | None = super().to_python(value)
        try:
            return at and at.astimezone(UTC)
        except OverflowError:
            raise forms.ValidationError(self.error_messages["invalid"], code="invalid") from None


class MomentFilter(django_filters.IsoDateTimeFilter):
    """Before or after a moment."""

    field_class = MomentField


class EventFilter(django_filters.FilterSet):
    subject_kind = django_filters.CharFilter()
    subject_id = django_filters.CharFilter()
    event = django_filters.CharFilter()
    actor = django_filters.CharFilter()
    outcome = django_filters.CharFilter()
    trace_id = django_filters.CharFilter(method="of_trace")
    since = MomentFilter(field_name="at", lookup_expr="gte")
    until = MomentFilter(field_name="at", lookup_expr="lt")

    class Meta:
        model = Event
        fields = ["subject_kind", "subject_id", "event", "actor", "outcome", "trace_id", "since", "until"]

    def of_trace(self, events: QuerySet[Event], name: str, trace_id: str) -> QuerySet[Event]:
        """Not those without a trace: only so does SQLite see that the index, which leaves them out, will do."""
        return events.filter(trace_id=trace_id).exclude(trace_id="")


class EventSearch(SearchFilter):
    """Every word must occur in the subject, event, actor, outcome, trace id or detail."""

    search_description = "Words that must all occur in the event, whatever its field."

    def filter_queryset(self, request: Request, queryset: QuerySet[Any], view: Any) -> QuerySet[Any]:
        text = request.query_params.get("search", "")
        if "\0" in text:
            raise ValidationError({"search": ["Null characters are not allowed."]})
        if len(text) > search.MAX_TEXT:
            raise ValidationError({"search": [f"At most {search.MAX_TEXT} characters."]})
        return search.matching(queryset, text)
