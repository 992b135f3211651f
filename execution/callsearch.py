"""Calls by what people ask for: the filters of the API, a whole toolkit, an id, and words anywhere in the call."""

from collections.abc import Iterable, Mapping
from uuid import UUID

import django_filters
from django.db.models import Q, QuerySet
from django.http import QueryDict

from execution.api.filters import CallFilter
from execution.models import Call
from policy.models import Agent

MAX_TEXT = 500
_TEXTS = ("call_id", "tool_ref", "trace_id", "error")


class FilterError(Exception):
    """A filter that does not exist or cannot be read: which, and why."""

    def __init__(self, field: str, reason: str) -> None:
        super().__init__(f"{field}: {reason}")
        self.field, self.reason = field, reason


class AnyCallFilter(CallFilter):
    """The API's filters, and a call's id of either kind; a tool without a dot is a whole toolkit."""

    id = django_filters.CharFilter(method="of_id")

    def of_tool(self, calls: QuerySet[Call], name: str, tool_id: str) -> QuerySet[Call]:
        if "." not in tool_id.removesuffix(".*") and "@" not in tool_id:
            return calls.filter(tool_ref__istartswith=f"{tool_id.removesuffix('.*')}.")
        return super().of_tool(calls, name, tool_id)

    def of_id(self, calls: QuerySet[Call], name: str, id: str) -> QuerySet[Call]:
        try:
            return calls.filter(Q(pk=UUID(id)) | Q(call_id=id))
        except ValueError:
            return calls.filter(call_id=id)


NAMES = (*AnyCallFilter.base_filters, "search")


def narrowed(calls: QuerySet[Call], wanted: Mapping[str, str]) -> QuerySet[Call]:
    """Those of the calls that fit every filter; several states have commas between them."""
    asked = QueryDict(mutable=True)
    for name, value in wanted.items():
        check(name, value, NAMES)
        if name == "state":
            asked.setlist(name, value.split(","))
        elif name != "search":
            asked[name] = value
    found = AnyCallFilter(asked, calls)
    if not found.is_valid():
        name, reasons = next(iter(found.errors.items()))
        raise FilterError(name, str(reasons[0]))
    return holding(found.qs, wanted.get("search", "").split())


def holding(calls: QuerySet[Call], phrases: Iterable[str]) -> QuerySet[Call]:
    """Those in which each of the texts occurs somewhere, without regard to case."""
    for phrase in phrases:
        # Agents are few: to look among them once is quicker than beside each call.
        found = Q(agent__in=list(Agent.objects.filter(name__icontains=phrase).values_list("pk", flat=True)[:500]))
        for field in _TEXTS:
            found |= Q(**{f"{field}__icontains": phrase})
        calls = calls.filter(found)
    return calls


def check(name: str, value: object, names: Iterable[str]) -> None:
    """Raises FilterError for a filter that is not one of these, or a value that no filter takes."""
    if name not in names:
        raise FilterError(name, f"Not known here; there are {', '.join(sorted(names))}.")
    if not isinstance(value, str) or "\0" in value:
        raise FilterError(name, "Give a text without null characters.")
    if len(value) > MAX_TEXT:
        raise FilterError(name, f"At most {MAX_TEXT} characters.")
