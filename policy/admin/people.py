"""People and their groups in the admin, dressed like the rest; every change is on the trail."""

import json
from typing import Any

from django.contrib import admin
from django.contrib.auth.admin import GroupAdmin as DjangoGroupAdmin
from django.contrib.auth.admin import UserAdmin as DjangoUserAdmin
from django.contrib.auth.models import Group, User
from django.core.exceptions import PermissionDenied
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from unfold.admin import ModelAdmin
from unfold.forms import AdminPasswordChangeForm, UserChangeForm, UserCreationForm

from audit import trail
from registry.actors import AGENT, actor, who

RIGHTS = ("is_staff", "is_superuser", "groups", "user_permissions")

for model in (User, Group):
    if admin.site.is_registered(model):
        admin.site.unregister(model)


class Told:
    """Writes what the admin's own log says to the trail as well, and which rights it moved, in the same transaction."""

    def save_model(self, request: HttpRequest, obj: Any, form: Any, change: bool) -> None:
        obj.rights_before = rights_of(type(obj)._default_manager.get(pk=obj.pk)) if change else set()
        super().save_model(request, obj, form, change)  # type: ignore[misc]

    def log_addition(self, request: HttpRequest, obj: Any, message: Any) -> Any:
        self._tell(request, obj, "created", message)
        return super().log_addition(request, obj, message)  # type: ignore[misc]

    def log_change(self, request: HttpRequest, obj: Any, message: Any) -> Any:
        self._tell(request, obj, "changed", message)
        return super().log_change(request, obj, message)  # type: ignore[misc]

    def log_deletions(self, request: HttpRequest, queryset: Any) -> Any:
        for obj in queryset:
            self._tell(request, obj, "deleted", [])
        return super().log_deletions(request, queryset)  # type: ignore[misc]

    def _tell(self, request: HttpRequest, obj: Any, what: str, message: Any) -> None:
        kind = obj._meta.model_name
        said = message if isinstance(message, str) else json.loads(json.dumps(message))
        trail.record(kind, str(obj), f"{kind}.{what}", actor=actor(who(request)), detail={"changes": said})
        before, after = getattr(obj, "rights_before", None), rights_of(obj)
        if before is not None and before != after:
            detail = {"given": sorted(after - before), "taken": sorted(before - after)}
            trail.record(kind, str(obj), f"{kind}.rights_changed", actor=actor(who(request)), detail=detail)


def rights_of(obj: User | Group) -> set[str]:
    """What makes this person, or the members of this group, more powerful than others."""
    held = obj.permissions if isinstance(obj, Group) else obj.user_permissions
    rights = {f"{app}.{name}" for app, name in held.values_list("content_type__app_label", "codename")}
    if isinstance(obj, User):
        rights |= {f"group:{name}" for name in obj.groups.values_list("name", flat=True)}
        rights |= {flag for flag in ("is_staff", "is_superuser") if getattr(obj, flag)}
    return rights


@admin.register(User)
class UserAdmin(Told, DjangoUserAdmin, ModelAdmin):  # type: ignore[type-arg]
    """People. The users behind agents are not shown: a password for one of them would be a second way in."""

    form = UserChangeForm
    add_form = UserCreationForm
    change_password_form = AdminPasswordChangeForm
    list_display = ["username", "email", "first_name", "last_name", "is_staff", "is_active"]
    list_filter = ["is_staff", "is_superuser", "is_active", "groups"]

    def get_queryset(self, request: HttpRequest) -> QuerySet[User]:
        return super().get_queryset(request).exclude(username__startswith=AGENT)

    def get_readonly_fields(self, request: HttpRequest, obj: User | None = None) -> Any:
        """Only a superuser gives rights, and not to himself; otherwise who may change users could make itself one."""
        given = tuple(super().get_readonly_fields(request, obj))
        if not request.user.is_superuser:
            return (*given, *RIGHTS, "last_login", "date_joined")
        return (*given, *RIGHTS) if obj is not None and obj.pk == request.user.pk else given

    def change_view(self, request: HttpRequest, object_id: str, *args: Any, **kwargs: Any) -> HttpResponse:
        """The page does not ask for one's own rights, so a request that brings them anyway is refused aloud."""
        if request.method == "POST" and object_id == str(request.user.pk) and not set(RIGHTS).isdisjoint(request.POST):
            raise PermissionDenied("Nobody changes their own groups, permissions or standing; another superuser does.")
        return super().change_view(request, object_id, *args, **kwargs)

    def has_change_permission(self, request: HttpRequest, obj: User | None = None) -> bool:
        """A superuser is changed by superusers only, password included."""
        is_above = obj is not None and obj.is_superuser and not request.user.is_superuser
        return super().has_change_permission(request, obj) and not is_above

    def has_delete_permission(self, request: HttpRequest, obj: User | None = None) -> bool:
        is_above = obj is not None and obj.is_superuser and not request.user.is_superuser
        return super().has_delete_permission(request, obj) and not is_above


@admin.register(Group)
class GroupAdmin(Told, DjangoGroupAdmin, ModelAdmin):
    """Groups of people and agents."""

    empty_text = "No group yet. Rules and permissions can name one: add it here and put people into it."

    def get_readonly_fields(self, request: HttpRequest, obj: Group | None = None) -> Any:
        """Rules name groups, so a new name can be a new right: superusers give it."""
        if request.user.is_superuser:
            return ()
        return ("permissions",) if obj is None else ("name", "permissions")
