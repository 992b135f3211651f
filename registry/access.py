"""Who sees which toolkits, drafts and tools, and who may do what with a toolkit: the object's permission decides."""

from typing import Any

from django.contrib.auth.models import AnonymousUser, User
from django.db.models import Q, QuerySet
from guardian.shortcuts import get_objects_for_user

from registry.models import Tool, Toolkit, ToolkitVersion

Who = User | AnonymousUser

_READING = ("view_toolkit", "call_toolkit", "audit_toolkit")  # a permission on all toolkits counts as well
_WORKING = ("publish_toolkit", "review_toolkit")  # only a permission on this very toolkit counts


def may(user: Who, verb: str, toolkit: Toolkit) -> bool:
    """Whether this person or agent has e.g. the permission to "publish" on exactly this toolkit; superusers may all."""
    return bool(user.has_perm(f"registry.{verb}_toolkit", toolkit))


def visible_toolkits(user: Who) -> QuerySet[Toolkit]:
    """Toolkits one owns, or may see, call, publish, review or audit; the others do not exist for this user."""
    if user.is_superuser:
        return Toolkit.objects.all()
    return Toolkit.objects.filter(
        Q(owner=user.pk) | Q(pk__in=_ids(user, *_READING, is_global_enough=True)) | Q(pk__in=_ids(user, *_WORKING))
    )


def visible_versions(user: Who) -> QuerySet[ToolkitVersion]:
    """Versions of visible toolkits; a draft is shown only to those who publish or review it."""
    if user.is_superuser:
        return ToolkitVersion.objects.all()
    seen = Q(toolkit__in=visible_toolkits(user)) & ~Q(state=ToolkitVersion.State.DRAFT)
    return ToolkitVersion.objects.filter(seen | Q(toolkit__in=_ids(user, *_WORKING)))


def visible_tools(user: Who) -> QuerySet[Tool]:
    """Tools of visible versions."""
    if user.is_superuser:
        return Tool.objects.all()
    return Tool.objects.filter(version__in=visible_versions(user))


def may_read_manifest(user: Who, toolkit: Toolkit) -> bool:
    """A manifest tells where a tool runs and with which secret: being allowed to call is not enough."""
    readers = get_objects_for_user(
        user,
        [f"registry.{name}" for name in ("view_toolkit", "audit_toolkit", *_WORKING)],
        Toolkit.objects.filter(pk=toolkit.pk),
        any_perm=True,
        accept_global_perms=False,
    )
    return bool(user.is_superuser or user.has_perm("registry.view_toolkit") or readers.exists())


def _ids(user: Who, *codenames: str, is_global_enough: bool = False) -> QuerySet[Any]:
    permitted = get_objects_for_user(
        user,
        [f"registry.{codename}" for codename in codenames],
        Toolkit,
        any_perm=True,
        accept_global_perms=is_global_enough,
    )
    return permitted.order_by().values("pk")
