"""People and their groups in the admin, dressed like the rest; every change is on the trail."""

import json
from typing import Any

from django.contrib import admin
from django.contrib.auth.admin import GroupAdmin as DjangoGroupAdmin
from django.contrib.auth.admin import UserAdmin as DjangoUserAdmin
from django.contrib.auth.models import Group, User
from django.db.models import QuerySet
from django.http import HttpRequest
from unfold.admin import ModelAdmin
from unfold.forms import AdminPasswordChangeForm, UserChangeForm, UserCreationForm

from audit import trail
from registry.actors import AGENT, actor, who

for model in (User, Group):
    if admin.site.is_registered(model):
        admin.site.unregister(model)


class Told:
    """Writes what the admin's own log says to the trail as well, in the same transaction."""

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
        """Only a superuser gives rights; otherwise who may change users could make itself one."""
        rights = ("is_staff", "is_superuser", "groups", "user_permissions")
        given = tuple(super().get_readonly_fields(request, obj))
        return given if request.user.is_superuser else (*given, *rights, "last_login", "date_joined")

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

    def get_readonly_fields(self, request: HttpRequest, obj: Group | None = None) -> Any:
        return () if request.user.is_superuser else ("permissions",)
