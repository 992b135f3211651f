"""Make a toolkit and describe it: the words around its versions."""

from typing import Any

from django.contrib.auth.models import User
from django.core.exceptions import PermissionDenied
from django.db import IntegrityError, transaction
from django.db.models import CharField, OuterRef, QuerySet, Subquery, Value
from django.db.models.functions import Cast, Concat
from guardian.shortcuts import assign_perm

from audit import trail
from registry.actors import actor
from registry.models import Toolkit, ToolkitVersion

_DESCRIPTIVE = ("title", "description", "owner")


class ToolkitError(Exception):
    """A toolkit that cannot be made as asked; the message says why."""


@transaction.atomic
def create(name: str, *, by: User, title: str = "", description: str = "", owner: User | None = None) -> Toolkit:
    """A toolkit without versions; who made it may see it and publish versions of it."""
    try:
        with transaction.atomic():
            toolkit = Toolkit.objects.create(name=name, title=title, description=description, owner=owner or by)
    except IntegrityError:
        raise ToolkitError(f"A toolkit named {name} exists already (case does not count).") from None
    welcome(toolkit, by)
    detail = {"title": title, "owner": toolkit.owner and toolkit.owner.get_username()}
    trail.record("toolkit", toolkit.name, "toolkit.created", actor=actor(by), detail=detail)
    return toolkit


def welcome(toolkit: Toolkit, maker: User) -> None:
    """Gives the maker of a toolkit the permissions to see it and to publish its versions."""
    for verb in ("view", "publish"):
        assign_perm(f"registry.{verb}_toolkit", maker, toolkit)


@transaction.atomic
def describe(toolkit: Toolkit, *, by: User, **changes: Any) -> Toolkit:
    """Changes title, description or owner; what does not change is not told.

    Who owns a toolkit gives the permissions on it, so it is handed over by its owner or a superuser, never taken.
    """
    toolkit = Toolkit.objects.select_for_update(of=("self",)).select_related("owner").get(pk=toolkit.pk)
    changed = {
        name: changes[name] for name in _DESCRIPTIVE if name in changes and changes[name] != getattr(toolkit, name)
    }
    if "owner" in changed and not may_hand_over(by, toolkit):
        raise PermissionDenied(f"Only its owner or a superuser hands {toolkit} over to somebody else.")
    if changed:
        for name, value in changed.items():
            setattr(toolkit, name, value)
        toolkit.save(update_fields=list(changed))
        detail = {name: value.get_username() if isinstance(value, User) else value for name, value in changed.items()}
        trail.record("toolkit", toolkit.name, "toolkit.described", actor=actor(by), detail=detail)
    return toolkit


def may_hand_over(user: User, toolkit: Toolkit) -> bool:
    return user.is_superuser or (toolkit.owner_id is not None and toolkit.owner_id == user.pk)


def with_latest_version(toolkits: QuerySet[Toolkit]) -> QuerySet[Toolkit]:
    """Each toolkit with `latest_version`: the highest published one, else the highest deprecated one, or None."""
    callable_ones = ToolkitVersion.objects.callable().filter(toolkit=OuterRef("pk"))
    number = Concat(*_with_dots("major", "minor", "patch"), output_field=CharField())
    by_preference = callable_ones.order_by("-state", "-major", "-minor", "-patch")  # published before deprecated
    highest = by_preference.annotate(number=number).values("number")[:1]
    return toolkits.annotate(latest_version=Subquery(highest))


def _with_dots(*fields: str) -> list[Any]:
    parts: list[Any] = []
    for field in fields:
        parts += [Value("."), Cast(field, CharField())]
    return parts[1:]
