"""An agent asks for a permission, a person gives or refuses it: sole writer of access requests."""

from collections.abc import Iterable
from typing import Any
from uuid import UUID

from django.contrib.auth.models import User
from django.core.exceptions import PermissionDenied
from django.db import transaction
from django.db.models import Q, QuerySet
from django.db.models.functions import Now
from guardian.shortcuts import get_users_with_perms

from audit import trail
from policy import granting, permissions
from policy.models import AccessRequest, Agent
from policy.notices import tell
from registry import access
from registry.actors import actor
from registry.models import Toolkit

MAX_PENDING = 20  # of one agent
PERMISSION = "call"  # what a denial is for lack of
_RELATED = ("agent__owner", "agent__user", "toolkit__owner", "decided_by")


class AccessRequestError(Exception):
    """A request that cannot be made or decided now; says why, and how a door should tell it."""

    def __init__(self, status: int, code: str, message: str, *, request: AccessRequest | None = None) -> None:
        super().__init__(message)
        self.status, self.code, self.message, self.request = status, code, message, request


@transaction.atomic
def ask(agent: Agent, toolkit: Toolkit, *, reason: str, by: User, call: UUID | None = None) -> AccessRequest:
    """A request that waits for the toolkit's owner; `by` is the agent's own user or a person who speaks for it."""
    agent = Agent.objects.select_for_update(of=("self",), no_key=True).select_related("user", "owner").get(pk=agent.pk)
    mine = AccessRequest.objects.filter(agent=agent, state=AccessRequest.State.PENDING)
    if first := mine.filter(toolkit=toolkit, permission=PERMISSION).first():
        message = f"Request {first.pk} for '{PERMISSION}' on {toolkit} is still pending."
        raise AccessRequestError(409, "already_pending", message, request=first)
    if access.may(agent.user, PERMISSION, toolkit) or agent.user.has_perm(f"registry.{PERMISSION}_toolkit"):
        raise AccessRequestError(409, "already_permitted", f"Agent {agent} may already {PERMISSION} {toolkit}.")
    if mine.count() >= MAX_PENDING:
        message = f"Agent {agent} has {MAX_PENDING} pending requests; more can be made once some are decided."
        raise AccessRequestError(429, "rate_limited", message)
    made = AccessRequest.objects.create(
        agent=agent, toolkit=toolkit, permission=PERMISSION, reason=reason, call=call, requested_by=actor(by)
    )
    _record(made, "access.requested", by)
    tell(
        "access.requested",
        people=_deciders(made),
        subject=f"{agent.name} asks to {PERMISSION} {toolkit.name}",
        text=f"Agent {agent.name} asks to {PERMISSION} the toolkit {toolkit.name}{_spokesman(made)}.",
        path=page_of(made),
        facts=_facts(made),
    )
    return made


@transaction.atomic
def grant(request: AccessRequest, *, by: User, note: str = "") -> AccessRequest:
    """Gives the permission and settles the request, both or neither."""
    held = _held(request)
    permissions.give(held.toolkit, held.permission, held.agent, by=by)
    return _settle(held, AccessRequest.State.GRANTED, by, note)


@transaction.atomic
def refuse(request: AccessRequest, *, by: User, note: str) -> AccessRequest:
    """Settles the request without giving anything; the note says why."""
    held = _held(request)
    if not granting.may_give(by, held.permission, held.toolkit):
        raise PermissionDenied(granting.obstacle(by, held.permission, held.toolkit, held.agent))
    if not note.strip():
        raise AccessRequestError(422, "reason_missing", "A refusal says why.")
    return _settle(held, AccessRequest.State.REFUSED, by, note)


def visible_to(user: User) -> QuerySet[AccessRequest]:
    """An agent's own; a person's: for toolkits they own or publish, and of agents they answer for; superusers all."""
    found = AccessRequest.objects.select_related(*_RELATED)
    if user.is_superuser:
        return found
    governed = granting.governed_toolkits(user).order_by().values("pk")
    return found.filter(Q(agent__user=user.pk) | Q(agent__owner=user.pk) | Q(toolkit__in=governed))


def page_of(request: AccessRequest) -> str:
    return f"/access-requests/{request.pk}/"


def _held(request: AccessRequest) -> AccessRequest:
    """The stored request, held until this transaction ends; one that is decided says by whom."""
    held = AccessRequest.objects.select_for_update(of=("self",)).select_related(*_RELATED).get(pk=request.pk)
    if held.state != AccessRequest.State.PENDING:
        who = held.decided_by.get_username() if held.decided_by is not None else "somebody"
        message = f"{who} has already {held.state} this request."
        raise AccessRequestError(409, "already_decided", message, request=held)
    return held


def _settle(held: AccessRequest, state: str, by: User, note: str) -> AccessRequest:
    pending = AccessRequest.objects.filter(pk=held.pk, state=AccessRequest.State.PENDING)
    pending.update(state=state, decided_by=by, decided_at=Now(), note=note.strip())
    settled = AccessRequest.objects.select_related(*_RELATED).get(pk=held.pk)
    _record(settled, f"access.{state}", by, note=settled.note)
    kind, _, name = settled.requested_by.partition(":")
    asker = User.objects.filter(username=name).first() if kind == "user" else None
    tell(
        f"access.{state}",
        people=[person for person in (settled.agent.owner, asker) if person is not None],
        subject=f"{settled.agent.name}: '{settled.permission}' on {settled.toolkit.name} is {state}",
        text=f"{by.get_username()} has {state} the request of agent {settled.agent.name}.",
        path=page_of(settled),
        facts=_facts(settled) | {"outcome": state},
    )
    return settled


def _deciders(request: AccessRequest) -> list[User]:
    """Who could give it: the owner and those who publish; a superuser only where nobody else is left."""
    toolkit = request.toolkit
    publishers: Iterable[Any] = get_users_with_perms(
        toolkit, only_with_perms_in=["publish_toolkit"], with_group_users=True
    )
    near = [*([toolkit.owner] if toolkit.owner else []), *publishers]
    for people in (near, User.objects.filter(is_superuser=True)):
        fit = [user for user in people if not granting.obstacle(user, request.permission, toolkit, request.agent)]
        if fit:
            return fit
    return []


def _spokesman(request: AccessRequest) -> str:
    kind, _, name = request.requested_by.partition(":")
    return f"; {name} asks for it" if kind == "user" else ""


def _facts(request: AccessRequest) -> dict[str, Any]:
    return {
        "agent": request.agent.name,
        "toolkit": request.toolkit.name,
        "permission": request.permission,
        "request": request.pk,
    }


def _record(request: AccessRequest, event: str, by: User, **more: str) -> None:
    detail = {"request": request.pk, "agent": request.agent.name, "permission": request.permission, **more}
    trail.record("toolkit", request.toolkit.name, event, actor=actor(by), detail=detail)
