"""What a list can be asked for; a misspelled question is refused instead of answered with everything."""

from typing import Any

from django.db.models import QuerySet
from rest_framework.filters import BaseFilterBackend, OrderingFilter
from rest_framework.request import Request

from registry.api.errors import BadParameter

_ALWAYS = frozenset({"page", "page_size", "ordering", "search", "format"})


class KnownParameters(BaseFilterBackend):
    """Refuses a query parameter that this list does not know."""

    def filter_queryset(self, request: Request, queryset: QuerySet[Any], view: Any) -> QuerySet[Any]:
        filters = getattr(view, "filterset_class", None)
        known = _ALWAYS | set(filters.base_filters if filters is not None else ())
        for name in request.query_params:
            if name not in known:
                raise BadParameter(name, f"Not known here; there are {', '.join(sorted(known - {'format'}))}.")
        return queryset

    def get_schema_operation_parameters(self, view: Any) -> list[dict[str, Any]]:
        return []


class StrictOrdering(OrderingFilter):
    """Orders by the named fields, then by the primary key so that pages never overlap; refuses other names."""

    def remove_invalid_fields(self, queryset: Any, fields: Any, view: Any, request: Request) -> list[str]:
        known = [name for name, _ in self.get_valid_fields(queryset, view, {"request": request})]
        for field in fields:
            if field.removeprefix("-") not in known:
                raise BadParameter("ordering", f"Order by {', '.join(known)}, with a minus for descending.")
        return [*fields, "pk"]
