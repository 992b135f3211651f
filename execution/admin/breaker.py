"""Breakers in the admin: tools that are left alone for a while, and the way back."""

from django.contrib import admin, messages
from django.db.models import QuerySet
from django.http import HttpRequest
from unfold.decorators import action, display

from audit.admin.readonly import ReadOnlyAdmin
from audit.visible import visible
from execution import breakers
from execution.models import Breaker
from registry.access import may, visible_tools


@admin.register(Breaker)
class BreakerAdmin(ReadOnlyAdmin):
    """Whoever may publish a toolkit may let calls of its tools through again."""

    empty_text = "No tool has failed: every call goes through."
    list_display = ["left_alone", "shown_state", "failures", "code", "opened_at", "retry_at"]
    list_display_links = None
    list_filter = ["state"]
    search_fields = ["tool__name", "tool__version__toolkit__name", "code"]
    ordering = ["-state", "-opened_at"]
    actions = ["let_through"]

    def get_queryset(self, request: HttpRequest) -> QuerySet[Breaker]:
        found = Breaker.objects.select_related("tool__version__toolkit")
        return found.filter(tool__in=visible_tools(request.user)).order_by("-state", "-opened_at")

    @action(description="Close it: let calls through again")
    def let_through(self, request: HttpRequest, queryset: QuerySet[Breaker]) -> None:
        for breaker in queryset:
            name = visible(str(breaker.tool))
            if not may(request.user, "publish", breaker.tool.version.toolkit):
                messages.error(request, f"{name}: only a person who may publish its toolkit may do this.")
                continue
            actor = f"user:{request.user.get_username()}"
            if breakers.close(breaker.tool_id, actor=actor, reason="a person closed it"):
                messages.success(request, f"Calls of {name} go through again.")
            else:
                messages.info(request, f"Calls of {name} go through already.")

    @display(description="Tool")
    def left_alone(self, breaker: Breaker) -> str:
        return visible(str(breaker.tool))

    @display(description="State", label={"Open": "danger", "Closed": "success"})
    def shown_state(self, breaker: Breaker) -> str:
        return breaker.get_state_display()
