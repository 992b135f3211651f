"""Who may do what with one toolkit: given by its owner and by superusers, told to the trail."""

from collections.abc import Callable
from typing import Any

from django.contrib.auth.models import Group, User
from django.core.exceptions import PermissionDenied
from django.db import transaction
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404
from guardian.admin import GroupManage, GuardedModelAdminMixin, UserManage
from guardian.forms import GroupObjectPermissionsForm, UserObjectPermissionsForm
from guardian.shortcuts import get_group_perms, get_user_perms
from unfold.widgets import UnfoldAdminCheckboxSelectMultipleWidget, UnfoldAdminTextInputWidget

from audit import trail
from registry import access
from registry.actors import actor, who
from registry.admin.pages import number
from registry.models import Toolkit

VERBS = {
    "view_toolkit": "See it, and read its manifests",
    "call_toolkit": "Call its tools",
    "publish_toolkit": "Write and publish versions",
    "review_toolkit": "Review versions before they are published",
    "approve_toolkit": "Approve calls",
    "audit_toolkit": "Read the evidence of calls",
    "serve_toolkit": "Serve calls as an outside worker",
}


class _Verbs:
    """The permissions that mean something on one toolkit, as boxes to tick."""

    def get_obj_perms_field_choices(self) -> list[tuple[str, str]]:
        return list(VERBS.items())

    def get_obj_perms_field_widget(self) -> Any:
        return UnfoldAdminCheckboxSelectMultipleWidget

    def get_obj_perms_field_label(self) -> str:
        return "May"


class UserVerbs(_Verbs, UserObjectPermissionsForm):
    """What one person or agent may do."""


class GroupVerbs(_Verbs, GroupObjectPermissionsForm):
    """What the members of a group may do."""


class WhichUser(UserManage):
    """Which person or agent to give something to."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields["user"].label = "Person or agent"
        self.fields["user"].help_text = "A user name, or agent:NAME for an agent."
        self.fields["user"].widget = UnfoldAdminTextInputWidget()


class WhichGroup(GroupManage):
    """Which group to give something to."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields["group"].widget = UnfoldAdminTextInputWidget()


class ToolkitPermissions(GuardedModelAdminMixin):
    """Guardian's pages, for those who may give, with what they gave and took on the trail."""

    def get_obj_perms_base_context(self, request: HttpRequest, obj: Any) -> Any:
        context = super().get_obj_perms_base_context(request, obj)  # type: ignore[no-untyped-call]
        context["model_perms"] = [perm for perm in context["model_perms"] if perm.codename in VERBS]
        context["title"] = f"Who may do what with {obj}"
        return context

    def get_obj_perms_user_select_form(self, request: HttpRequest) -> type[UserManage]:
        return WhichUser

    def get_obj_perms_group_select_form(self, request: HttpRequest) -> type[GroupManage]:
        return WhichGroup

    def get_obj_perms_manage_user_form(self, request: HttpRequest) -> type[UserObjectPermissionsForm]:
        return UserVerbs

    def get_obj_perms_manage_group_form(self, request: HttpRequest) -> type[GroupObjectPermissionsForm]:
        return GroupVerbs

    def obj_perms_manage_view(self, request: HttpRequest, object_pk: str) -> HttpResponse:
        self._grantable(request, object_pk)
        response: HttpResponse = super().obj_perms_manage_view(request, object_pk)  # type: ignore[no-untyped-call]
        return response

    def obj_perms_manage_user_view(self, request: HttpRequest, object_pk: str, user_id: str) -> HttpResponse:
        toolkit = self._grantable(request, object_pk)
        user = get_object_or_404(User, pk=number(user_id))
        page = super().obj_perms_manage_user_view
        return _told(request, toolkit, actor(user), lambda: _codenames(get_user_perms(user, toolkit)), page, user_id)

    def obj_perms_manage_group_view(self, request: HttpRequest, object_pk: str, group_id: str) -> HttpResponse:
        toolkit = self._grantable(request, object_pk)
        group = get_object_or_404(Group, pk=number(group_id))
        page = super().obj_perms_manage_group_view
        name = f"group:{group.name}"
        return _told(request, toolkit, name, lambda: _codenames(get_group_perms(group, toolkit)), page, group_id)

    def may_grant(self, request: HttpRequest, toolkit: Toolkit) -> bool:
        """Permissions on a toolkit are given by its owner and by superusers."""
        return bool(request.user.is_superuser or (toolkit.owner_id and toolkit.owner_id == request.user.pk))

    def _grantable(self, request: HttpRequest, object_pk: str) -> Toolkit:
        toolkit: Toolkit = get_object_or_404(access.visible_toolkits(request.user), pk=number(object_pk))
        if not self.may_grant(request, toolkit):
            raise PermissionDenied("Only the owner of a toolkit gives permissions on it.")
        return toolkit


def _codenames(permissions: Any) -> set[str]:
    return set(permissions)


@transaction.atomic
def _told(
    request: HttpRequest, toolkit: Toolkit, whom: str, given: Callable[[], set[str]], page: Any, pk: str
) -> HttpResponse:
    """Guardian's page, and on the trail what it changed."""
    before = given()
    response: HttpResponse = page(request, str(toolkit.pk), pk)
    after = given()
    if before != after:
        detail = {"whom": whom, "given": sorted(after - before), "taken": sorted(before - after)}
        trail.record("toolkit", toolkit.name, "toolkit.permissions", actor=actor(who(request)), detail=detail)
    return response
