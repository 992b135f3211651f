"""How a list of events is narrowed and searched."""

from typing import Any

import django_filters
from django.db.models import QuerySet
from rest_framework.exceptions import ValidationError
from rest_framework.filters import SearchFilter
from rest_framework.request import Request

from audit import search
from audit.models import Event


class EventFilter(django_filters.FilterSet):
    subject_kind = django_filters.CharFilter()
    subject_id = django_filters.CharFilter()
    event = django_filters.CharFilter()
    actor = django_filters.CharFilter()
    outcome = django_filters.CharFilter()
    trace_id = django_filters.CharFilter(method="of_trace")
    since = django_filters.IsoDateTimeFilter(field_name="at", lookup_expr="gte")
    until = django_filters.IsoDateTimeFilter(field_name="at", lookup_expr="lt")

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
