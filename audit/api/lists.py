"""What all of /api/ shares: a misspelled question is refused instead of answered with everything."""

from collections.abc import Collection
from typing import Any

from django.db.models import QuerySet
from django_filters import MultipleChoiceFilter
from rest_framework.exceptions import ValidationError
from rest_framework.filters import BaseFilterBackend, OrderingFilter, SearchFilter
from rest_framework.request import Request

_ALWAYS = frozenset({"page", "page_size", "ordering", "format"})


class BadQuestion(ValidationError):
    """Something is wrong with the query parameters, whatever the method: no body was at fault."""


class KnownParameters(BaseFilterBackend):
    """Refuses a query parameter that this list does not know; a view names further ones in `more_parameters`."""

    def filter_queryset(self, request: Request, queryset: QuerySet[Any], view: Any) -> QuerySet[Any]:
        filters = getattr(view, "filterset_class", None)
        filtered = filters.base_filters if filters else {}
        searched = ("search",) if _is_searched(view) else ()
        several = [name for name, each in filtered.items() if isinstance(each, MultipleChoiceFilter)]
        known = (*_ALWAYS, *searched, *filtered, *getattr(view, "more_parameters", ()))
        refuse_unknown(request, *known, several=several)
        return queryset

    def get_schema_operation_parameters(self, view: Any) -> list[dict[str, Any]]:
        return []


class StrictOrdering(OrderingFilter):
    """Orders by the names that answers use, then by key so that pages never overlap; refuses other names.

    A view's `ordering_columns` says which columns a name stands for where it is not a column's own.
    """

    def get_default_ordering(self, view: Any) -> list[str] | None:
        ordering = [*(super().get_default_ordering(view) or ())]
        if not ordering or ordering[-1].lstrip("-") in ("id", "pk"):
            return ordering or None
        return [*ordering, "-pk" if ordering[-1].startswith("-") else "pk"]

    def remove_invalid_fields(self, queryset: Any, fields: Any, view: Any, request: Request) -> list[str]:
        columns = getattr(view, "ordering_columns", {})
        ordered, sign = [], ""
        for field in fields:
            sign, name = ("-", field[1:]) if field.startswith("-") else ("", field)
            if name not in view.ordering_fields:
                raise ValidationError({"ordering": [_told(view)]})
            ordered += [sign + column for column in columns.get(name, (name,))]
        return [*ordered, f"{sign}pk"]

    def get_schema_operation_parameters(self, view: Any) -> list[dict[str, Any]]:
        (ordering,) = super().get_schema_operation_parameters(view)
        return [{**ordering, "description": _told(view)}]


def refuse_unknown(request: Request, *known: str, several: Collection[str] = ()) -> None:
    """Raises a BadQuestion about every query parameter that is not one of these, or is given twice.

    Those in `several` may be given more than once; of any other, one value would count and the rest be ignored.
    """
    told = f"Not known here; there are {', '.join(sorted(known))}."
    if unknown := sorted(set(request.query_params) - set(known)):
        raise BadQuestion({name: [told] for name in unknown})
    if twice := [name for name, values in request.query_params.lists() if len(values) > 1 and name not in several]:
        raise BadQuestion({name: ["Give it once."] for name in twice})


def _is_searched(view: Any) -> bool:
    """Whether words are looked for in this list: in its search fields, or by a search of its own."""
    searches = [backend for backend in view.filter_backends if issubclass(backend, SearchFilter)]
    return any(search is not SearchFilter or hasattr(view, "search_fields") for search in searches)


def _told(view: Any) -> str:
    return f"Order by {', '.join(view.ordering_fields)}, with a minus for descending."
