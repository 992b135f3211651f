"""Who may give which permission on a toolkit, and to whom: never to oneself.

A superuser may give anything, and the trail shows when it was to himself. The owner of a toolkit gives every
permission on it. Who publishes it gives what agents live on: view, call, serve. Nobody else gives anything, and only a
permission on this very toolkit counts. Only at its making does an agent get something from its own maker: what he has
himself, or gives as owner or publisher (`ungrantable`). What it gets later, another person gives.
"""

from collections.abc import Iterable

from django.contrib.auth.models import Group, User
from django.db.models import Q, QuerySet
from guardian.shortcuts import get_objects_for_user

from policy.models import Agent
from registry import access
from registry.actors import AGENT, is_person
from registry.models import Toolkit

VERBS = ("view", "call", "publish", "review", "approve", "audit", "serve")
FOR_AGENTS = ("view", "call", "serve")  # the others are a person's word or a person's reading

Holder = User | Group | Agent


def ungrantable(user: User, *, verb: str, toolkits: Iterable[str]) -> list[str]:
    """The names among these that this person cannot give; one they cannot see reads like one that is not there."""
    if user.is_superuser:
        return []
    named = {name.lower(): name for name in toolkits}
    visible = {toolkit.name.lower(): toolkit for toolkit in access.visible_toolkits(user)}
    return [name for key, name in named.items() if key not in visible or not _has(user, verb, visible[key])]


def may_give(user: User, verb: str, toolkit: Toolkit) -> bool:
    """Whether this person may give this permission to somebody else."""
    if not (is_person(user) and user.is_active):
        return False
    if user.is_superuser or _owns(user, toolkit):
        return True
    return verb in FOR_AGENTS and access.may(user, "publish", toolkit)


def may_list(user: User, toolkit: Toolkit) -> bool:
    """Who gives permissions, or audits the toolkit, reads who has which."""
    return may_give(user, "call", toolkit) or (is_person(user) and access.may(user, "audit", toolkit))


def obstacle(user: User, verb: str, toolkit: Toolkit, to: Holder) -> str:
    """Why this person may not give this permission to this holder; empty if they may."""
    if not is_person(user):
        return "Permissions are given by people who are logged in, never by an agent."
    if not may_give(user, verb, toolkit):
        return f"'{verb}' on {toolkit} is given by its owner{_or_publishers(verb)} or a superuser."
    if gains(user, to) and not user.is_superuser:
        return f"Nobody gives a permission to {_in_words(to)}; another person does."
    return ""


def gains(user: User, to: Holder) -> bool:
    """Whether what this holder gets is in this person's own hands; one address is one person."""
    if isinstance(to, Group):
        return any(_is_same(user, member) for member in to.user_set.all())
    if isinstance(to, Agent):
        return to.owner is not None and _is_same(user, to.owner)
    return _is_same(user, to)


def impossible(verb: str, to: Holder) -> str:
    """Why nobody can give this holder this permission; empty if somebody could."""
    if verb not in VERBS:
        return f"There is no permission {verb!r} on a toolkit; there are {', '.join(VERBS)}."
    if verb in FOR_AGENTS:
        return ""
    if isinstance(to, Agent):
        return f"An agent may get {', '.join(FOR_AGENTS)}; '{verb}' is for people."
    if isinstance(to, Group) and to.user_set.filter(username__startswith=AGENT).exists():
        return f"The group {to.name} has an agent in it; '{verb}' is for people."
    return ""


def governed_toolkits(user: User) -> QuerySet[Toolkit]:
    """The toolkits that this person owns or publishes, and so decides access requests for; superusers all."""
    if not is_person(user):
        return Toolkit.objects.none()
    if user.is_superuser:
        return Toolkit.objects.all()
    published = get_objects_for_user(user, "registry.publish_toolkit", Toolkit, accept_global_perms=False)
    return Toolkit.objects.filter(Q(owner=user.pk) | Q(pk__in=published.order_by().values("pk")))


def _has(user: User, verb: str, toolkit: Toolkit) -> bool:
    return _owns(user, toolkit) or access.may(user, verb, toolkit) or access.may(user, "publish", toolkit)


def _owns(user: User, toolkit: Toolkit) -> bool:
    return toolkit.owner_id is not None and toolkit.owner_id == user.pk


def _is_same(one: User, other: User) -> bool:
    return one.pk == other.pk or (bool(one.email) and one.email.casefold() == other.email.casefold())


def _or_publishers(verb: str) -> str:
    return ", who publishes it" if verb in FOR_AGENTS else ""


def _in_words(to: Holder) -> str:
    if isinstance(to, Group):
        return "a group that they are in"
    return "an agent of their own" if isinstance(to, Agent) else "themselves"
