"""Capabilities in the admin: which powers there are, and how many tools need them."""

from django.contrib import admin
from django.db.models import Count, QuerySet
from django.http import HttpRequest
from unfold.admin import ModelAdmin
from unfold.decorators import display

from registry.admin.guarded import ReadOnly
from registry.models import Capability


@admin.register(Capability)
class CapabilityAdmin(ReadOnly, ModelAdmin):
    """Capabilities appear when a manifest names them; nothing here changes them."""

    empty_text = "No tool needs a power yet. Capabilities appear when a manifest names them, such as data.read."
    list_display = ["name", "description", "used_by"]
    search_fields = ["name", "description"]
    list_per_page = 50

    def get_queryset(self, request: HttpRequest) -> QuerySet[Capability]:
        found: QuerySet[Capability] = super().get_queryset(request)
        return found.annotate(tool_count=Count("tools"))

    @display(description="Tools", ordering="tool_count")
    def used_by(self, capability: Capability) -> int:
        return int(capability.tool_count)  # type: ignore[attr-defined]
