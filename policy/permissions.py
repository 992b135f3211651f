"""Who may do what with a toolkit: sole writer of permissions on toolkits, each change on the toolkit's trail.

The one permission that does not come from here is the maker's own, which a toolkit is born with (registry.toolkits).
"""

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from django.contrib.auth.models import Group, Permission, User
from django.core.exceptions import PermissionDenied
from django.db import transaction
from guardian.models import GroupObjectPermission, UserObjectPermission
from guardian.shortcuts import assign_perm, get_group_perms, get_user_perms, remove_perm

from audit import trail
from policy.granting import VERBS, Holder, gains, impossible, may_give, obstacle
from policy.models import Agent
from registry.actors import AGENT, actor
from registry.models import Toolkit

_USER, _GROUP = "user:", "group:"
_CODENAMES = {f"{verb}_toolkit": verb for verb in VERBS}


class ImpossiblePermission(Exception):
    """A permission that this holder can never have; the message says why."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Held:
    """What one holder may do with one toolkit."""

    holder: str  # "user:ana", "group:payments" or "agent:bot"
    permissions: tuple[str, ...]


@transaction.atomic
def give(toolkit: Toolkit, verb: str, to: Holder, *, by: User) -> bool:
    """Gives it, if this person may; True if the holder did not have it before."""
    if reason := impossible(verb, to):
        raise ImpossiblePermission(reason)
    if reason := obstacle(by, verb, toolkit, to):
        raise PermissionDenied(reason)
    return put(toolkit, verb, to, actor=actor(by), is_to_oneself=gains(by, to))


@transaction.atomic
def give_all(toolkit: Toolkit, verbs: Iterable[str], to: Holder, *, by: User) -> None:
    """All of them or none."""
    for verb in verbs:
        give(toolkit, verb, to, by=by)


@transaction.atomic
def take(toolkit: Toolkit, verb: str, holder: Holder, *, by: User) -> bool:
    """Takes it away, if this person may; True if the holder had it. Also from oneself: that is no gain."""
    if verb not in VERBS:
        raise ImpossiblePermission(impossible(verb, holder))
    if not may_give(by, verb, toolkit):
        raise PermissionDenied(obstacle(by, verb, toolkit, holder))
    Toolkit.objects.select_for_update(no_key=True).get(pk=toolkit.pk)
    if not _has(toolkit, verb, holder):
        return False
    remove_perm(f"registry.{verb}_toolkit", _guardians(holder), toolkit)
    detail = {"permission": verb, "holder": name_of(holder)}
    trail.record("toolkit", toolkit.name, "permission.taken", actor=actor(by), detail=detail)
    return True


@transaction.atomic
def put(toolkit: Toolkit, verb: str, to: Holder, *, actor: str, is_to_oneself: bool = False) -> bool:
    """Gives it without asking who may: for the shell, and for who makes an agent and has been asked already."""
    if reason := impossible(verb, to):
        raise ImpossiblePermission(reason)
    Toolkit.objects.select_for_update(no_key=True).get(
        pk=toolkit.pk
    )  # two who give the same at once: one of them gave it
    if _has(toolkit, verb, to):
        return False
    assign_perm(f"registry.{verb}_toolkit", _guardians(to), toolkit)
    detail: dict[str, Any] = {"permission": verb, "holder": name_of(to)}
    if is_to_oneself:
        detail["to_oneself"] = True
    trail.record("toolkit", toolkit.name, "permission.given", actor=actor, detail=detail)
    return True


def held(toolkit: Toolkit, holder: Holder) -> Held:
    """What this holder was given on this toolkit, not counting what groups bring."""
    codenames = get_group_perms(holder, toolkit) if isinstance(holder, Group) else None
    if codenames is None:
        codenames = get_user_perms(_guardians(holder), toolkit)
    return Held(holder=name_of(holder), permissions=_in_order(codenames))


def all_held(toolkit: Toolkit) -> list[Held]:
    """Every holder of a permission on exactly this toolkit: groups, then people, then agents, by name."""
    found: dict[str, set[str]] = defaultdict(set)
    on_it = {"object_pk": str(toolkit.pk), "permission__in": _permissions()}
    of_users = UserObjectPermission.objects.filter(**on_it).values_list("user__username", "permission__codename")
    for username, codename in of_users:
        found[username if username.startswith(AGENT) else f"{_USER}{username}"].add(codename)
    of_groups = GroupObjectPermission.objects.filter(**on_it).values_list("group__name", "permission__codename")
    for name, codename in of_groups:
        found[f"{_GROUP}{name}"].add(codename)
    rank = {"group": 0, "user": 1, "agent": 2}
    names = sorted(found, key=lambda name: (rank[name.partition(":")[0]], name))
    return [Held(holder=name, permissions=_in_order(found[name])) for name in names]


def holder_named(text: str) -> Holder | None:
    """The person, group or agent behind `user:NAME`, `group:NAME` or `agent:NAME`; None if there is none."""
    kind, _, name = text.partition(":")
    match kind:
        case "user":
            return User.objects.filter(username=name).exclude(username__startswith=AGENT).first()
        case "group":
            return Group.objects.filter(name=name).first()
        case "agent":
            return Agent.objects.select_related("user", "owner").filter(name=name).first()
    return None


def name_of(holder: Holder) -> str:
    if isinstance(holder, Group):
        return f"{_GROUP}{holder.name}"
    return f"{AGENT}{holder.name}" if isinstance(holder, Agent) else actor(holder)


def _has(toolkit: Toolkit, verb: str, holder: Holder) -> bool:
    return verb in held(toolkit, holder).permissions


def _guardians(holder: Holder) -> User | Group:
    """Guardian knows users and groups; an agent's permissions hang on a user of its own."""
    return holder.user if isinstance(holder, Agent) else holder


def _in_order(codenames: Any) -> tuple[str, ...]:
    given = set(codenames)
    return tuple(verb for codename, verb in _CODENAMES.items() if codename in given)


def _permissions() -> Any:
    return Permission.objects.filter(content_type__app_label="registry", codename__in=_CODENAMES)
