"""Tools in the admin: find them by what they are called, say, take and need."""

import json
from typing import Any

from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404
from unfold.admin import ModelAdmin
from unfold.decorators import display

from registry import access, search
from registry.admin.guarded import SeenToolkits
from registry.admin.pages import LABELS, PagesAdmin, number, only
from registry.models import Tool, ToolkitVersion
from registry.parameters import parameters, type_of
from registry.risk import RiskLevel


class RuntimeFilter(admin.SimpleListFilter):
    """Where the tool runs."""

    title = "runtime"
    parameter_name = "runtime"

    def lookups(self, request: HttpRequest, model_admin: ModelAdmin) -> list[tuple[str, str]]:
        names = ("python", "http", "external", "grpc", "webhook-callback", "container", "wasm", "mcp", "session")
        return [(name, name) for name in names]

    def queryset(self, request: HttpRequest, queryset: QuerySet[Tool]) -> QuerySet[Tool]:
        return search.of_runtime(queryset, self.value() or "") if self.value() else queryset


@admin.register(Tool)
class ToolAdmin(SeenToolkits, PagesAdmin):
    """Read-only: a tool changes by publishing a new version of its toolkit."""

    empty_text = (
        "No tool yet, or none that you may see. Tools come with a toolkit's version: paste a manifest under Versions, "
        "or run manage.py import_toolkit."
    )
    list_display = ["full_name", "description_line", "risk_label", "state_label", "runtime_type"]
    list_display_links = ["full_name"]
    list_filter = [
        ("risk", admin.ChoicesFieldListFilter),
        ("version__state", admin.ChoicesFieldListFilter),
        RuntimeFilter,
        ("capabilities", admin.RelatedOnlyFieldListFilter),
        ("version__toolkit", admin.RelatedOnlyFieldListFilter),
    ]
    list_select_related = ["version__toolkit"]
    search_fields = ["name"]  # shows the box; get_search_results looks further
    search_help_text = "Search names, descriptions and parameters"
    ordering = ["version__toolkit__name", "name", "-version__major", "-version__minor", "-version__patch"]
    list_per_page = 50

    def get_search_results(
        self, request: HttpRequest, queryset: QuerySet[Tool], search_term: str
    ) -> tuple[QuerySet[Tool], bool]:
        return search.matching(queryset, search_term), False

    @only("GET", "HEAD")
    def change_view(self, request: HttpRequest, object_id: str, *args: Any, **kwargs: Any) -> HttpResponse:
        found = self.get_queryset(request).select_related("version__toolkit").prefetch_related("capabilities")
        tool: Tool = get_object_or_404(found, pk=number(object_id))
        is_open = access.may_read_manifest(request.user, tool.version.toolkit)
        return self.page(request, "registry/tool.html", tool.tool_id, shown=shown(tool, is_open=is_open), original=tool)

    @display(description="Tool", ordering="name")
    def full_name(self, tool: Tool) -> str:
        return tool.tool_id

    @display(description="Description")
    def description_line(self, tool: Tool) -> str:
        line = (tool.description or tool.title).strip().partition("\n")[0]
        return line if len(line) <= 80 else f"{line[:79]}…"

    @display(description="Risk", ordering="risk", label=LABELS)
    def risk_label(self, tool: Tool) -> tuple[str, str]:
        return RiskLevel(tool.risk).word, RiskLevel(tool.risk).label

    @display(description="State", ordering="version__state", label=LABELS)
    def state_label(self, tool: Tool) -> tuple[str, str]:
        return tool.version.state, ToolkitVersion.State(tool.version.state).label

    @display(description="Runtime")
    def runtime_type(self, tool: Tool) -> str:
        return str(tool.runtime.get("type", ""))


def shown(tool: Tool, *, is_open: bool) -> dict[str, Any]:
    """What a template needs to show one tool; where exactly it runs only to those who may read the manifest."""
    risk = RiskLevel(tool.risk)
    runtime = {name: value for name, value in tool.runtime.items() if is_open or name in ("type", "dispatch")}
    return {
        "tool": tool,
        "heading": f"{tool.name}: {tool.title}" if tool.title and tool.title != tool.name else tool.name,
        "parameters": parameters(tool.input_schema, tool.non_inferrable),
        "risk": risk,
        "risk_kind": LABELS[risk.word],
        "state_kind": LABELS[tool.version.state],
        "answer": "nothing" if tool.output_schema is None else type_of(tool.output_schema),
        "capabilities": sorted(capability.name for capability in tool.capabilities.all()),
        "runtime": [(name, _text(value)) for name, value in runtime.items()],
        "requirements": [(name, _text(value)) for name, value in tool.requirements.items() if value],
        "input_schema": json.dumps(tool.input_schema, indent=2, ensure_ascii=False),
        "output_schema": json.dumps(tool.output_schema, indent=2, ensure_ascii=False),
    }


def _text(value: Any) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{name} {_text(inner)}" for name, inner in value.items())
    if isinstance(value, list):
        return "; ".join(map(_text, value))
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
