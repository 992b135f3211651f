"""Agents that may call a toolkit, whichever way they were permitted; and those of one person, for trying."""

from dataclasses import dataclass

from django.contrib.auth.models import User
from django.db.models import Q, QuerySet
from guardian.models import GroupObjectPermission, UserObjectPermission

from policy import agents
from policy.models import Agent
from registry.models import Toolkit

OWN = "me"  # how a form names the agent of the one who fills it in


def permitted_agents(toolkit: Toolkit) -> QuerySet[Agent]:
    """Active agents with `call` on this toolkit or on all, given to themselves or to a group they are in."""
    permission = {"content_type__app_label": "registry", "codename": "call_toolkit"}
    on_it = {f"permission__{name}": value for name, value in permission.items()} | {"object_pk": str(toolkit.pk)}
    ways = Q(user__in=UserObjectPermission.objects.filter(**on_it).values("user"))
    ways |= Q(user__groups__in=GroupObjectPermission.objects.filter(**on_it).values("group"))
    for place in ("user__user_permissions", "user__groups__permissions"):
        ways |= Q(**{f"{place}__{name}": value for name, value in permission.items()})
    able = Agent.objects.filter(ways, is_active=True, user__is_active=True).order_by().values("pk")
    return Agent.objects.filter(pk__in=able).select_related("owner").order_by("name")


@dataclass(frozen=True, slots=True, kw_only=True)
class Mine:
    """An agent that a person can act through; their own may not have been made yet."""

    key: str
    title: str
    agent: Agent | None
    may_call: bool


def agents_of(person: User, toolkit: Toolkit) -> list[Mine]:
    """The person's own agent first, then the active ones that they answer for."""
    owned = list(Agent.objects.filter(owner=person, is_active=True, user__is_active=True).order_by("name"))
    able = set(permitted_agents(toolkit).filter(owner=person).values_list("pk", flat=True))
    own = next((agent for agent in owned if agent.person_id == person.pk), None)
    named = own.name if own is not None else agents.name_for(person)
    return [
        Mine(key=OWN, title=f"{named} (you)", agent=own, may_call=own is not None and own.pk in able),
        *(
            Mine(key=agent.name, title=agent.name, agent=agent, may_call=agent.pk in able)
            for agent in owned
            if agent is not own
        ),
    ]
