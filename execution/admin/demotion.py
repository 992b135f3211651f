"""Demotions in the admin: tools that overran in the web process, and the way back."""

from django.contrib import admin, messages
from django.db.models import QuerySet
from django.http import HttpRequest
from unfold.decorators import action, display

from audit.admin.readonly import ReadOnlyAdmin
from audit.visible import visible
from execution import inline
from execution.models import Demotion
from registry.access import may, visible_tools


@admin.register(Demotion)
class DemotionAdmin(ReadOnlyAdmin):
    """Whoever may publish a toolkit may let its tools run inline again."""

    empty_text = "No inline tool has overrun its time: each runs where its version says."
    list_display = ["served", "since", "because"]
    list_display_links = None
    search_fields = ["tool__name", "tool__version__toolkit__name", "reason"]
    ordering = ["-since"]
    actions = ["let_run_inline"]

    def get_queryset(self, request: HttpRequest) -> QuerySet[Demotion]:
        demotions = Demotion.objects.select_related("tool__version__toolkit")
        return demotions.filter(tool__in=visible_tools(request.user)).order_by("-since")

    @action(description="Let it run inline again")
    def let_run_inline(self, request: HttpRequest, queryset: QuerySet[Demotion]) -> None:
        for demotion in queryset:
            name = visible(str(demotion.tool))
            if not may(request.user, "publish", demotion.tool.version.toolkit):
                messages.error(request, f"{name}: only a person who may publish its toolkit may do this.")
                continue
            inline.promote(demotion, actor=f"user:{request.user.get_username()}")
            messages.success(request, f"{name} runs in the web process again.")

    @display(description="Tool")
    def served(self, demotion: Demotion) -> str:
        return visible(str(demotion.tool))

    @display(description="Why")
    def because(self, demotion: Demotion) -> str:
        return visible(demotion.reason)
