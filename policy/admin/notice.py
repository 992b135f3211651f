"""Notices in the admin: what was sent, what waits, and what was given up and why."""

from typing import Any

from django.contrib import admin, messages
from django.contrib.admin import ChoicesFieldListFilter
from django.db.models import QuerySet
from django.http import HttpRequest
from unfold.decorators import action, display

from audit.admin.readonly import ReadOnlyAdmin
from audit.visible import visible
from policy import delivery
from policy.models import Notice
from registry.actors import actor, who

STATES = {"waiting": "info", "sent": "success", "failed": "danger"}


@admin.register(Notice)
class NoticeAdmin(ReadOnlyAdmin):
    """For those who may view notices: they hold people's addresses."""

    empty_text = "No notice yet. One is written when somebody is asked for an approval or for access."
    list_display = ["made", "kind", "channel", "target", "subject", "state_label", "attempts", "why"]
    list_display_links = None
    list_filter = [("state", ChoicesFieldListFilter), ("channel", ChoicesFieldListFilter)]
    search_fields = ["kind", "target", "error"]
    search_help_text = "Search kinds, addresses and errors"
    ordering = ["-id"]
    actions = ["send_again"]

    def get_queryset(self, request: HttpRequest) -> QuerySet[Notice]:
        return Notice.objects.order_by("-id")

    def has_view_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return bool(super().has_view_permission(request) and request.user.has_perm("policy.view_notice"))

    def has_send_permission(self, request: HttpRequest) -> bool:
        return bool(request.user.is_superuser)

    @action(description="Send again what was given up", permissions=["send"])
    def send_again(self, request: HttpRequest, queryset: QuerySet[Notice]) -> None:
        count = delivery.try_again(queryset, actor=actor(who(request)))
        messages.info(request, f"{count} given up before will be sent again.")

    @display(description="Made (UTC)", ordering="id")
    def made(self, notice: Notice) -> str:
        return f"{notice.created_at:%Y-%m-%d %H:%M:%S}"

    @display(description="Subject")
    def subject(self, notice: Notice) -> str:
        return visible(str(notice.content.get("subject", "")))

    @display(description="State", ordering="state", label=STATES)
    def state_label(self, notice: Notice) -> tuple[str, str]:
        return notice.state, notice.get_state_display()

    @display(description="Last error")
    def why(self, notice: Notice) -> str:
        return notice.error or "-"
