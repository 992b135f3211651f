"""Calls in the admin: the list; one call is shown as its timeline."""

from typing import Any

from django.contrib import admin
from django.db.models import QuerySet
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect
from unfold.contrib.filters.admin import ChoicesCheckboxFilter
from unfold.decorators import display

from audit.admin.filters import SpanFilter
from audit.admin.readonly import ReadOnlyAdmin
from audit.visible import visible
from execution.access import visible_calls
from execution.admin.filters import AgentFilter, DoorFilter, ToolkitFilter
from execution.models import Call
from execution.sentences import milliseconds
from execution.tones import DOORS, LABELS

_HEAVY = ("input", "result", "error", "decision", "warnings", "sealed", "sealed_answer")


@admin.register(Call)
class CallAdmin(ReadOnlyAdmin):
    """Everyone on the staff may look; each sees the calls that are theirs to see."""

    empty_text = "No call yet, or none that is yours to see. An agent makes one with POST /tools/call."
    list_display = ["when", "by", "what", "status", "through", "took"]
    list_filter = [
        ("state", ChoicesCheckboxFilter),
        DoorFilter,
        AgentFilter,
        ToolkitFilter,
        ("created_at", SpanFilter),
    ]
    search_fields = ["id", "call_id", "tool_ref", "agent__name", "trace_id", "error"]
    search_help_text = "Call id, tool, agent, trace id or error"
    ordering = ["-id"]

    def get_queryset(self, request: HttpRequest) -> QuerySet[Call]:
        return visible_calls(request.user, None).select_related("agent").defer(*_HEAVY).order_by("-id")

    def change_view(
        self, request: HttpRequest, object_id: str, form_url: str = "", extra_context: Any = None
    ) -> HttpResponse:
        """There is one page for a call, whoever looks at it."""
        call = self.get_object(request, object_id)
        if call is None:
            raise Http404
        return redirect("subject-call", call.pk)

    @display(description="Time (UTC)", ordering="id")
    def when(self, call: Call) -> str:
        return f"{call.created_at:%Y-%m-%d %H:%M:%S}.{call.created_at.microsecond // 1000:03d}"

    @display(description="Agent", ordering="agent__name")
    def by(self, call: Call) -> str:
        return visible(call.agent.name)

    @display(description="Tool", ordering="tool_ref")
    def what(self, call: Call) -> str:
        return visible(call.tool_ref) or "(none)"

    @display(description="State", ordering="state", label=LABELS)
    def status(self, call: Call) -> tuple[str, str]:
        return call.state, call.get_state_display()

    @display(description="Door", ordering="door")
    def through(self, call: Call) -> str:
        return DOORS.get(call.door, call.door)

    @display(description="Duration", ordering="duration_ms")
    def took(self, call: Call) -> str:
        return milliseconds(call.duration_ms) if call.duration_ms is not None else "-"
