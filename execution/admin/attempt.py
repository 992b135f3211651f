"""Attempts in the admin: every run of every call."""

from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest
from django.urls import reverse
from django.utils.html import format_html
from unfold.decorators import display

from audit.admin.filters import SpanFilter
from audit.admin.readonly import ReadOnlyAdmin
from audit.visible import visible
from execution.access import visible_calls
from execution.models import Attempt

STATUSES = {
    "succeeded": "success",
    "failed": "danger",
    "timed_out": "danger",
    "lost": "danger",
    "cancelled": "warning",
}


@admin.register(Attempt)
class AttemptAdmin(ReadOnlyAdmin):
    """Each shows what came of one run; the call's timeline tells the rest."""

    empty_text = (
        "No tool has run yet, or none of the runs is yours to see. Each run of a call's tool leaves one row; "
        "an agent makes a call with POST /tools/call."
    )
    list_display = ["ended", "of", "number", "came_to", "ran", "upstream", "why"]
    list_filter = [("finished_at", SpanFilter)]
    list_display_links = None
    search_fields = ["call__tool_ref", "call__call_id", "where", "code", "detail"]
    search_help_text = "Tool, call id, place, code or detail"
    ordering = ["-id"]

    def get_queryset(self, request: HttpRequest) -> QuerySet[Attempt]:
        attempts = Attempt.objects.select_related("call").only(
            "number", "where", "finished_at", "status", "code", "detail", "upstream_status", "call__tool_ref"
        )
        if not request.user.has_perm("execution.view_call"):
            attempts = attempts.filter(call__in=visible_calls(request.user, None).order_by().values("pk"))
        return attempts.order_by("-id")

    @display(description="Ended (UTC)", ordering="id")
    def ended(self, attempt: Attempt) -> str:
        return f"{attempt.finished_at:%Y-%m-%d %H:%M:%S}.{attempt.finished_at.microsecond // 1000:03d}"

    @display(description="Call")
    def of(self, attempt: Attempt) -> str:
        page = reverse("subject-call", args=[attempt.call_id])
        return format_html('<a class="evidence-link" href="{}">{}</a>', page, visible(attempt.call.tool_ref))

    @display(description="Status", label=STATUSES)
    def came_to(self, attempt: Attempt) -> tuple[str, str]:
        return attempt.status, attempt.status.replace("_", " ")

    @display(description="Where")
    def ran(self, attempt: Attempt) -> str:
        return visible(attempt.where) or "-"

    @display(description="Upstream")
    def upstream(self, attempt: Attempt) -> str:
        return visible(attempt.upstream_status) or "-"

    @display(description="Why")
    def why(self, attempt: Attempt) -> str:
        told = visible(f"{attempt.code}: {attempt.detail}" if attempt.code else attempt.detail)
        return told if len(told) <= 120 else f"{told[:120]}…"
