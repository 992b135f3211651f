"""Create agents, hand out and revoke keys: sole writer of agents and credentials."""

import hashlib
import re
import secrets
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.contrib.auth import get_user_model
from django.contrib.auth.models import Permission, User
from django.core.exceptions import ValidationError
from django.db import IntegrityError, transaction
from django.db.models import QuerySet
from django.db.models.functions import Now
from django.utils import timezone

from audit import trail
from policy import permissions
from policy.models import Agent, Credential
from policy.sealedbox import seal, unseal
from registry.actors import AGENT, is_person
from registry.actors import actor as actor_of
from registry.models import Toolkit

KEY_FORM = "plc"
MAX_OVERLAP = timedelta(days=90)  # for which a rotated key may go on


class AgentError(Exception):
    """An agent that cannot be made or changed as asked; the message says why."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NewAgent:
    """An agent with its secrets, which are shown this once."""

    agent: Agent
    key: str
    jwt_secret: str

    def __repr__(self) -> str:
        return f"NewAgent({self.agent.name})"


@transaction.atomic
def create(
    name: str,
    *,
    actor: str,
    owner: str | None = None,
    call: Iterable[str] = (),
    serve: Iterable[str] = (),
    call_all: bool = False,
) -> NewAgent:
    """An agent that may call or serve the named toolkits, with a first key and a JWT secret."""
    people = get_user_model()
    call, serve = tuple(call), tuple(serve)
    holder = people(username=f"agent:{name}", is_active=True)
    holder.set_unusable_password()
    agent = Agent(name=name, user=holder)
    if owner is not None:
        agent.owner = people.objects.filter(username=owner, agent=None).first()
        if agent.owner is None:
            raise AgentError(f"there is no user named {owner!r} to own the agent")
    try:
        agent.clean_fields(exclude=["user", "sealed_jwt_secret"])
        with transaction.atomic():
            holder.save()
            agent.user = holder
            agent.save()
    except ValidationError as error:
        raise AgentError("; ".join(error.messages)) from error
    except IntegrityError:
        raise AgentError(f"there is already an agent named {name!r}") from None
    jwt_secret = secrets.token_urlsafe(32)
    agent.sealed_jwt_secret = seal(jwt_secret.encode(), bound_to=jwt_box(agent.pk))
    agent.save(update_fields=["sealed_jwt_secret"])
    for verb, names in (("call", call), ("serve", serve)):
        for toolkit in _toolkits(names):
            permissions.put(toolkit, verb, agent, actor=actor)
    if call_all:
        holder.user_permissions.add(Permission.objects.get(content_type__app_label="registry", codename="call_toolkit"))
    detail = {"call": sorted(call), "serve": sorted(serve), "call_all": call_all, "owner": owner}
    trail.record("agent", name, "agent.created", actor=actor, detail=detail)
    return NewAgent(agent=agent, key=new_key(agent, actor=actor), jwt_secret=jwt_secret)


def for_person(person: User) -> Agent:
    """The agent through which this person tries tools: theirs alone, without any key, and made when first needed."""
    found = Agent.objects.select_related("user", "owner").filter(person=person).first()
    return found if found is not None else _made_for(person)


def name_for(person: User) -> str:
    """What that agent is called, unless somebody took the name."""
    fit = re.sub(r"[^A-Za-z0-9._-]+", "-", person.get_username()).strip("-._")
    return f"person-{fit[:40] or person.pk}"


def _made_for(person: User) -> Agent:
    if not is_person(person):
        raise AgentError("only people have an agent of their own")
    name = name_for(person)
    if Agent.objects.filter(name=name).exists():
        name = f"{name}-{person.pk}-{secrets.token_hex(2)}"
    holder = User(username=f"{AGENT}{name}", is_active=True)
    holder.set_unusable_password()
    try:
        with transaction.atomic():
            holder.save()
            agent = Agent.objects.create(name=name, user=holder, owner=person, person=person)
            detail = {"owner": person.get_username(), "person": person.get_username()}
            trail.record("agent", name, "agent.created", actor=actor_of(person), detail=detail)
    except IntegrityError:  # the same person, a moment ago, in another window
        found = Agent.objects.select_related("user", "owner").filter(person=person).first()
        if found is None:
            raise AgentError(f"the name {name!r} was taken a moment ago; try once more") from None
        return found
    return agent


@transaction.atomic
def new_key(agent: Agent, *, actor: str, label: str = "", expires_at: datetime | None = None) -> str:
    """A further key for the agent; only its hash is kept."""
    if agent.person_id is not None:
        raise AgentError(f"{agent.name} acts for a person at the portal and never has a key; make an agent of its own")
    if expires_at is not None and expires_at <= timezone.now():
        raise AgentError("a key cannot expire in the past")
    prefix, secret = secrets.token_hex(5), secrets.token_urlsafe(32)
    key = f"{KEY_FORM}_{prefix}_{secret}"
    Credential.objects.create(agent=agent, prefix=prefix, hash=hash_of(key), label=label, expires_at=expires_at)
    detail = {"key": prefix, "label": label, "expires_at": expires_at.isoformat() if expires_at else None}
    trail.record("agent", agent.name, "agent.key_created", actor=actor, detail=detail)
    return key


@transaction.atomic
def revoke_key(credential: Credential, *, actor: str) -> bool:
    """Close a key at once; True if it was open."""
    if not Credential.objects.filter(pk=credential.pk, revoked_at=None).update(revoked_at=Now()):
        return False
    trail.record("agent", credential.agent.name, "agent.key_revoked", actor=actor, detail={"key": credential.prefix})
    return True


@transaction.atomic
def rotate_key(credential: Credential, *, actor: str, keep: timedelta) -> str:
    """A new key with the label and the length of life of this one, which ends after `keep`, or at once."""
    old = Credential.objects.select_for_update(of=("self",)).select_related("agent").get(pk=credential.pk)
    moment = timezone.now()
    if old.revoked_at is not None or (old.expires_at is not None and old.expires_at <= moment):
        raise AgentError("this key has ended already; make a new one instead")
    if keep < timedelta(0) or keep > MAX_OVERLAP:
        raise AgentError(f"the old key can go on for {MAX_OVERLAP.days} days at most")
    life = old.expires_at - old.created_at if old.expires_at else None
    key = new_key(old.agent, actor=actor, label=old.label, expires_at=moment + life if life else None)
    end = min(moment + keep, old.expires_at) if old.expires_at else moment + keep
    if keep:
        Credential.objects.filter(pk=old.pk).update(expires_at=end)
    else:
        revoke_key(old, actor=actor)
    detail = {"key": old.prefix, "new_key": prefix_of(key), "old_ends_at": end.isoformat() if keep else None}
    trail.record("agent", old.agent.name, "agent.key_rotated", actor=actor, detail=detail)
    return key


@transaction.atomic
def set_active(agent: Agent, is_active: bool, *, actor: str) -> bool:
    """Let an agent in, or shut it out with all its keys; True if that changed anything."""
    if not Agent.objects.filter(pk=agent.pk, is_active=not is_active).update(is_active=is_active):
        return False
    trail.record("agent", agent.name, "agent.enabled" if is_active else "agent.disabled", actor=actor)
    return True


def visible_to(user: User) -> QuerySet[Agent]:
    """Agents that this person owns, or all for those who may view or change agents."""
    if user.has_perm("policy.view_agent") or user.has_perm("policy.change_agent"):
        return Agent.objects.all()
    return Agent.objects.filter(owner=user.pk)


def may_change(user: User, agent: Agent) -> bool:
    """Whether this person hands out the agent's keys and takes them back."""
    return agent.owner_id == user.pk or user.has_perm("policy.change_agent")


def prefix_of(key: str) -> str:
    """The public part of a key, by which people know it."""
    return key.split("_")[1]


def hash_of(key: str) -> str:
    return hashlib.sha256(key.encode("utf-8", "surrogatepass")).hexdigest()


def jwt_secret_of(agent: Agent) -> str | None:
    if agent.sealed_jwt_secret is None:
        return None
    return unseal(bytes(agent.sealed_jwt_secret), bound_to=jwt_box(agent.pk)).decode()


def jwt_box(agent_id: int) -> str:
    """The name of the place that an agent's JWT secret is sealed for."""
    return f"policy.agent:{agent_id}:jwt_secret"


def _toolkits(names: Iterable[str]) -> list[Toolkit]:
    found = []
    for name in names:
        toolkit = Toolkit.objects.filter(name__iexact=name).first()
        if toolkit is None:
            raise AgentError(f"there is no toolkit named {name!r}")
        found.append(toolkit)
    return found
