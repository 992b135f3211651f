"""Filters over calls; their choices name only what the person may see anyway."""

from typing import Any

from django.db.models import QuerySet
from django.http import HttpRequest
from unfold.contrib.filters.admin import DropdownFilter

from execution.access import visible_calls
from execution.models import Call
from execution.tones import DOORS
from policy.models import Agent
from registry.models import Toolkit


class DoorFilter(DropdownFilter):
    title, parameter_name = "door", "door"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        return list(DOORS.items())

    def queryset(self, request: HttpRequest, queryset: QuerySet[Call]) -> QuerySet[Call]:
        return queryset.filter(door=self.value()) if self.value() else queryset


class AgentFilter(DropdownFilter):
    title, parameter_name = "agent", "agent"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        agents = Agent.objects.all()
        if not request.user.has_perm("execution.view_call"):
            agents = agents.filter(pk__in=visible_calls(request.user, None).order_by().values("agent"))
        return [(name, name) for name in agents.values_list("name", flat=True)]

    def queryset(self, request: HttpRequest, queryset: QuerySet[Call]) -> QuerySet[Call]:
        return queryset.filter(agent__name=_plain(self.value())) if self.value() else queryset


class ToolkitFilter(DropdownFilter):
    title, parameter_name = "toolkit", "toolkit"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        toolkits = Toolkit.objects.all()
        if not request.user.has_perm("execution.view_call"):
            seen = visible_calls(request.user, None).order_by().values("tool__version__toolkit")
            toolkits = toolkits.filter(pk__in=seen)
        return [(name, name) for name in toolkits.order_by("name").values_list("name", flat=True)]

    def queryset(self, request: HttpRequest, queryset: QuerySet[Call]) -> QuerySet[Call]:
        return queryset.filter(tool__version__toolkit__name=_plain(self.value())) if self.value() else queryset


def _plain(value: str | None) -> str:
    return (value or "").replace("\0", "")
