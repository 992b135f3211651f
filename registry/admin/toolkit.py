"""Toolkits in the admin: browse and describe them."""

from typing import Any

from django.contrib import admin
from django.contrib.auth.models import User
from django.db.models import QuerySet
from django.http import HttpRequest
from django.urls import reverse
from django.utils.html import format_html
from django.utils.safestring import SafeString
from unfold.admin import TabularInline
from unfold.decorators import display

from registry import access, toolkits
from registry.actors import AGENT, who
from registry.admin.guarded import ReadOnly, SeenToolkits
from registry.admin.pages import PagesAdmin, label
from registry.models import Toolkit, ToolkitVersion
from registry.risk import RiskLevel


class VersionInline(ReadOnly, TabularInline):
    """The versions of a toolkit, to click on."""

    model = ToolkitVersion
    fields = ["link", "state_label", "risk_label", "published_at", "published_by"]
    readonly_fields = fields
    verbose_name_plural = "versions"
    extra = 0
    max_num = 0
    can_delete = False
    hide_title = True

    def has_add_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def get_queryset(self, request: HttpRequest) -> QuerySet[ToolkitVersion]:
        versions = access.visible_versions(request.user).select_related("toolkit", "published_by")
        return versions.order_by("-major", "-minor", "-patch")

    @display(description="Version")
    def link(self, version: ToolkitVersion) -> SafeString:
        url = reverse("admin:registry_toolkitversion_change", args=[version.pk])
        return format_html('<a class="text-link font-semibold" href="{}">{}</a>', url, version.version)

    @display(description="State")
    def state_label(self, version: ToolkitVersion) -> SafeString:
        return label(version.state, version.get_state_display())

    @display(description="Risk")
    def risk_label(self, version: ToolkitVersion) -> SafeString:
        return label(RiskLevel(version.risk).word, RiskLevel(version.risk).label)


class ToolkitAdmin(SeenToolkits, PagesAdmin):
    """A toolkit's words; its versions have pages of their own, and policy adds who may do what with it."""

    empty_text = (
        "No toolkit yet, or none that you may see. "
        "One comes with its first version: paste a manifest under Versions, or run manage.py import_toolkit."
    )
    list_display = ["name", "title", "latest", "owner", "created_at"]
    list_display_links = ["name"]
    list_filter = [("owner", admin.RelatedOnlyFieldListFilter)]
    list_select_related = ["owner"]
    search_fields = ["name", "title", "description"]
    search_help_text = "Search names, titles and descriptions"
    fields = ["name", "title", "description", "owner"]
    inlines = [VersionInline]
    list_per_page = 50
    compressed_fields = True

    def get_queryset(self, request: HttpRequest) -> QuerySet[Toolkit]:
        return toolkits.with_latest_version(super().get_queryset(request))

    @display(description="Latest", empty_value="none published")
    def latest(self, toolkit: Toolkit) -> str | None:
        return toolkit.latest_version  # type: ignore[attr-defined,no-any-return]

    # Who may

    def has_add_permission(self, request: HttpRequest) -> bool:
        return bool(request.user.is_staff and request.user.has_perm("registry.add_toolkit"))

    def has_change_permission(self, request: HttpRequest, obj: Toolkit | None = None) -> bool:
        return self.has_module_permission(request) and (obj is None or access.may(request.user, "publish", obj))

    def get_readonly_fields(self, request: HttpRequest, obj: Toolkit | None = None) -> list[str]:
        if obj is None:
            return []
        return ["name"] if toolkits.may_hand_over(who(request), obj) else ["name", "owner", "owned_by"]

    def get_fields(self, request: HttpRequest, obj: Toolkit | None = None) -> list[str]:
        """An owner that stands there to be read leads to an account; who may not open it reads the name alone."""
        chooses = obj is None or (
            self.has_change_permission(request, obj) and toolkits.may_hand_over(who(request), obj)
        )
        if chooses or who(request).has_perm("auth.view_user"):
            return [*self.fields]
        return ["owned_by" if name == "owner" else name for name in self.fields]

    @display(description="Owner", empty_value="nobody")
    def owned_by(self, toolkit: Toolkit) -> str | None:
        return toolkit.owner.get_username() if toolkit.owner else None

    def get_inlines(self, request: HttpRequest, obj: Toolkit | None) -> list[Any]:
        return [] if obj is None else self.inlines

    def formfield_for_foreignkey(self, db_field: Any, request: HttpRequest, **kwargs: Any) -> Any:
        if db_field.name == "owner":
            kwargs["queryset"] = User.objects.filter(is_active=True).exclude(username__startswith=AGENT)
        return super().formfield_for_foreignkey(db_field, request, **kwargs)

    # Writing, always through registry.toolkits

    def save_model(self, request: HttpRequest, obj: Toolkit, form: Any, change: bool) -> None:
        if change:
            changes = {name: form.cleaned_data[name] for name in form.changed_data if name in form.cleaned_data}
            toolkits.describe(obj, by=who(request), **changes)
        else:
            made = toolkits.create(
                obj.name, by=who(request), title=obj.title, description=obj.description, owner=obj.owner
            )
            obj.pk, obj._state.adding = made.pk, False
