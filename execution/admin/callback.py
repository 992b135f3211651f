"""Callbacks in the admin: the answers that calls wait for, and what became of those waits."""

from typing import Any

from django.contrib import admin
from django.db.models import QuerySet
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import reverse
from django.utils.html import format_html
from unfold.contrib.filters.admin import ChoicesCheckboxFilter
from unfold.decorators import display

from audit.admin.filters import SpanFilter
from audit.admin.readonly import ReadOnlyAdmin
from audit.visible import visible
from execution.access import visible_calls
from execution.models import Callback

LABELS = {"open": "info", "answered": "success", "expired": "danger", "closed": "warning"}
_SEEN = (
    *("fence", "request_id", "state", "asked_at", "deadline", "next_poll_at", "polls", "failed_polls", "refused"),
    *("upstream_status", "call__tool_ref"),
)


@admin.register(Callback)
class CallbackAdmin(ReadOnlyAdmin):
    """Each is one attempt's wait; neither tokens nor addresses are shown, the call's timeline tells the rest."""

    empty_text = "No tool has taken a call to answer it later. Those of the type webhook-callback do so."
    list_display = ["asked", "of", "fence", "shown_state", "until", "looks", "refused", "upstream"]
    list_display_links = None
    list_filter = [("state", ChoicesCheckboxFilter), ("asked_at", SpanFilter)]
    search_fields = ["request_id", "call__tool_ref"]
    search_help_text = "Request id or tool"
    ordering = ["-id"]

    def get_queryset(self, request: HttpRequest) -> QuerySet[Callback]:
        found = Callback.objects.select_related("call").only(*_SEEN)
        if not request.user.has_perm("execution.view_call"):
            found = found.filter(call__in=visible_calls(request.user, None).order_by().values("pk"))
        return found.order_by("-id")

    def change_view(
        self, request: HttpRequest, object_id: str, form_url: str = "", extra_context: Any = None
    ) -> HttpResponse:
        """There is one page for a call and all its waits."""
        callback = self.get_object(request, object_id)
        if callback is None:
            raise Http404
        return redirect("subject-call", callback.call_id)

    @display(description="Asked (UTC)", ordering="id")
    def asked(self, callback: Callback) -> str:
        return f"{callback.asked_at:%Y-%m-%d %H:%M:%S}"

    @display(description="Call")
    def of(self, callback: Callback) -> str:
        page = reverse("subject-call", args=[callback.call_id])
        return format_html('<a class="evidence-link" href="{}">{}</a>', page, visible(callback.call.tool_ref))

    @display(description="State", ordering="state", label=LABELS)
    def shown_state(self, callback: Callback) -> tuple[str, str]:
        return callback.state, callback.get_state_display()

    @display(description="Answer due (UTC)", ordering="deadline")
    def until(self, callback: Callback) -> str:
        return f"{callback.deadline:%Y-%m-%d %H:%M:%S}"

    @display(description="Looks")
    def looks(self, callback: Callback) -> str:
        failed = f", {callback.failed_polls} failed" if callback.failed_polls else ""
        return f"{callback.polls}{failed}"

    @display(description="Upstream")
    def upstream(self, callback: Callback) -> str:
        return visible(callback.upstream_status) or "-"
