"""Holding: what users may do with toolkits and where they have it from, for many at once, in a handful of queries."""

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from django.contrib.auth.models import Group, User
from django.db.models import Q
from guardian.models import GroupObjectPermission, UserObjectPermission

from policy.granting import VERBS

_ON_TOOLKITS = {"content_type__app_label": "registry", "content_type__model": "toolkit"}
_CODENAMES = {f"{verb}_toolkit": verb for verb in VERBS}
DIRECT = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Held:
    """One permission of one user, or of one group, on one toolkit, or on all of them."""

    verb: str
    toolkit: int | None  # None: every toolkit
    group: str  # the group that brings it; empty: it was given to this very holder

    @property
    def source(self) -> str:
        """Where it comes from, in words."""
        through = f"through the group {self.group}" if self.group else "given directly"
        return f"{through}, on every toolkit" if self.toolkit is None else through


Holdings = defaultdict[int, list[Held]]


def of_users(users: Any, toolkits: Iterable[int] | None = None) -> Holdings:
    """By user: what was given on these toolkits (None: on any), what groups bring, and what counts everywhere."""
    found: Holdings = defaultdict(list)
    on_them = _on(toolkits)
    own = UserObjectPermission.objects.filter(on_them, user__in=users)
    for user, key, codename in own.values_list("user_id", "object_pk", "permission__codename"):
        found[user].append(Held(verb=_CODENAMES[codename], toolkit=int(key), group=DIRECT))
    ours = GroupObjectPermission.objects.filter(on_them, group__user__in=users)
    columns = ("group__user", "object_pk", "permission__codename", "group__name")
    for user, key, codename, name in ours.values_list(*columns):
        found[user].append(Held(verb=_CODENAMES[codename], toolkit=int(key), group=name))
    for user, codename in _everywhere(User.objects.filter(pk__in=users), "user_permissions"):
        found[user].append(Held(verb=_CODENAMES[codename], toolkit=None, group=DIRECT))
    members = User.objects.filter(pk__in=users, **_of_registry("groups__permissions"))
    for user, codename, name in members.values_list("pk", "groups__permissions__codename", "groups__name"):
        found[user].append(Held(verb=_CODENAMES[codename], toolkit=None, group=name))
    return found


def of_groups(groups: Any, toolkits: Iterable[int] | None = None) -> Holdings:
    """The same by group: what was given to it."""
    found: Holdings = defaultdict(list)
    own = GroupObjectPermission.objects.filter(_on(toolkits), group__in=groups)
    for group, key, codename in own.values_list("group_id", "object_pk", "permission__codename"):
        found[group].append(Held(verb=_CODENAMES[codename], toolkit=int(key), group=DIRECT))
    for group, codename in _everywhere(Group.objects.filter(pk__in=groups), "permissions"):
        found[group].append(Held(verb=_CODENAMES[codename], toolkit=None, group=DIRECT))
    return found


def users_on(toolkits: Iterable[int] | None, verb: str = "") -> Q:
    """Everybody who holds something, or this very permission, on these toolkits, directly or through a group."""
    direct = UserObjectPermission.objects.filter(_on(toolkits, verb)).order_by().values("user")
    grouped = User.groups.through.objects.filter(group__in=groups_on(toolkits, verb)).order_by().values("user")
    return Q(pk__in=direct) | Q(pk__in=grouped)


def groups_on(toolkits: Iterable[int] | None, verb: str = "") -> Any:
    """The groups that hold something, or this very permission, on these toolkits, as a query."""
    return GroupObjectPermission.objects.filter(_on(toolkits, verb)).order_by().values("group")


def _on(toolkits: Iterable[int] | None, verb: str = "") -> Q:
    known = Q(permission__codename__in=[f"{verb}_toolkit"] if verb else list(_CODENAMES), **_ON_TOOLKITS)
    return known if toolkits is None else known & Q(object_pk__in=[str(key) for key in toolkits])


def _of_registry(path: str) -> dict[str, Any]:
    return {
        f"{path}__content_type__app_label": "registry",
        f"{path}__content_type__model": "toolkit",
        f"{path}__codename__in": list(_CODENAMES),
    }


def _everywhere(holders: Any, path: str) -> Any:
    return holders.filter(**_of_registry(path)).order_by().values_list("pk", f"{path}__codename")
