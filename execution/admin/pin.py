"""Pins in the admin: what tools of upstream servers were at first use, and which are refused because they changed."""

from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest
from unfold.admin import ModelAdmin
from unfold.decorators import display

from audit.admin.readonly import ReadOnlyAdmin
from audit.visible import visible
from execution.models import Pin
from registry.access import visible_tools


class ChangedFilter(admin.SimpleListFilter):
    """Whether the upstream still is what it was."""

    title = "upstream"
    parameter_name = "upstream"

    def lookups(self, request: HttpRequest, model_admin: ModelAdmin) -> list[tuple[str, str]]:
        return [("changed", "Changed"), ("same", "As pinned")]

    def queryset(self, request: HttpRequest, queryset: QuerySet[Pin]) -> QuerySet[Pin]:
        match self.value():
            case "changed":
                return queryset.exclude(other_digest="")
            case "same":
                return queryset.filter(other_digest="")
        return queryset


@admin.register(Pin)
class PinAdmin(ReadOnlyAdmin):
    """For looking at: what an upstream made of its tool becomes callable by a new version, which someone looked at."""

    empty_text = "No tool of an upstream MCP server has been called yet. Its definition is pinned at the first call."
    list_display = ["pinned_tool", "shown_state", "pinned_at", "shown_digest", "why"]
    list_display_links = None
    list_filter = [ChangedFilter]
    search_fields = ["tool__name", "tool__version__toolkit__name", "digest", "other_digest"]
    search_help_text = "Tool, toolkit or digest"
    ordering = ["-pinned_at"]

    def get_queryset(self, request: HttpRequest) -> QuerySet[Pin]:
        found = Pin.objects.select_related("tool__version__toolkit")
        return found.filter(tool__in=visible_tools(request.user)).order_by("-pinned_at")

    @display(description="Tool")
    def pinned_tool(self, pin: Pin) -> str:
        return visible(str(pin.tool))

    @display(description="Upstream", label={"Changed: refused": "danger", "As pinned": "success"})
    def shown_state(self, pin: Pin) -> str:
        return "Changed: refused" if pin.other_digest else "As pinned"

    @display(description="Digest at first use")
    def shown_digest(self, pin: Pin) -> str:
        return pin.digest[:16]

    @display(description="Why it is refused")
    def why(self, pin: Pin) -> str:
        if not pin.other_digest:
            return "-"
        return (
            f"Its server now describes it otherwise (digest {pin.other_digest[:16]}): its description, schemas or "
            "annotations changed after this version was first used. Look at it, then publish a new version."
        )
