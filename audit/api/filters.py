"""How a list of events is narrowed, searched and ordered; a misspelled question is refused."""

from typing import Any

import django_filters
from django.db.models import QuerySet
from rest_framework.exceptions import ValidationError
from rest_framework.filters import BaseFilterBackend, OrderingFilter, SearchFilter
from rest_framework.request import Request

from audit import search
from audit.models import Event

_ALWAYS = frozenset({"page", "page_size", "ordering", "search", "format"})


class EventFilter(django_filters.FilterSet):
    subject_kind = django_filters.CharFilter()
    subject_id = django_filters.CharFilter()
    event = django_filters.CharFilter()
    actor = django_filters.CharFilter()
    outcome = django_filters.CharFilter()
    trace_id = django_filters.CharFilter()
    since = django_filters.IsoDateTimeFilter(field_name="at", lookup_expr="gte")
    until = django_filters.IsoDateTimeFilter(field_name="at", lookup_expr="lt")

    class Meta:
        model = Event
        fields = ["subject_kind", "subject_id", "event", "actor", "outcome", "trace_id", "since", "until"]


class KnownParameters(BaseFilterBackend):
    """Refuses a query parameter that this list does not know: a typo must not answer with everything."""

    def filter_queryset(self, request: Request, queryset: QuerySet[Any], view: Any) -> QuerySet[Any]:
        filters = getattr(view, "filterset_class", None)
        known = _ALWAYS | set(filters.base_filters if filters else ()) | set(getattr(view, "more_parameters", ()))
        unknown = sorted(set(request.query_params) - known)
        if unknown:
            told = f"Not known here; there are {', '.join(sorted(known - {'format'}))}."
            raise ValidationError({name: [told] for name in unknown})
        return queryset

    def get_schema_operation_parameters(self, view: Any) -> list[dict[str, Any]]:
        return []


class EventSearch(SearchFilter):
    """Every word must occur in the subject, event, actor, outcome, trace id or detail."""

    search_description = "Words that must all occur in the event, whatever its field."

    def filter_queryset(self, request: Request, queryset: QuerySet[Any], view: Any) -> QuerySet[Any]:
        text = request.query_params.get("search", "")
        if len(text) > search.MAX_TEXT:
            raise ValidationError({"search": [f"At most {search.MAX_TEXT} characters."]})
        return search.matching(queryset, text)


class StrictOrdering(OrderingFilter):
    """Orders by the named fields, then by key; refuses other names."""

    def remove_invalid_fields(self, queryset: Any, fields: Any, view: Any, request: Request) -> list[str]:
        known = [name for name, _ in self.get_valid_fields(queryset, view, {"request": request})]
        for field in fields:
            if field.removeprefix("-") not in known:
                told = f"Order by {', '.join(known)}, with a minus for descending."
                raise ValidationError({"ordering": [told]})
        # Events are numbered as they are written, so their key orders them by time, and needs no sorting.
        named = [field.replace("at", "pk") if field in ("at", "-at") else field for field in fields]
        return [*named, "-pk" if fields[-1].startswith("-") else "pk"]
