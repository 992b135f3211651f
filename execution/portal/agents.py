"""Agents: who calls, with which keys, how much; only those that are this person's to see."""

from datetime import timedelta
from typing import Any

from django.core.exceptions import PermissionDenied
from django.core.paginator import Paginator
from django.db.models import Count, Max, Min, OuterRef, Q, QuerySet, Subquery
from django.http import HttpRequest, HttpResponse
from django.utils import timezone

from execution.models import Call
from execution.portal import agentusage, holding
from execution.portal.frame import for_people, page
from execution.portal.keys import shown_once
from policy import agents
from policy.admin.agent import NewAgentForm
from policy.models import Agent
from registry.actors import actor, who

PER_PAGE = 25
SOON = timedelta(days=14)
WEEK = 7
STATES = (("", "All"), ("active", "Active"), ("shut-out", "Shut out"))
KEYS = (("", "Any keys"), ("soon", "Key ends within 14 days"), ("none", "No key in force"), ("unused", "Never used"))


@for_people("GET", "HEAD")
def overview(request: HttpRequest) -> HttpResponse:
    """The agents that this person may see, by name."""
    user, now = who(request), timezone.now()
    seen = agents.visible_to(user)
    asked = {name: request.GET.get(name, "")[:100].replace("\0", "") for name in ("q", "state", "keys", "mine")}
    found = _narrowed(_with_keys(seen), asked, user.pk)
    pages = Paginator(found.select_related("owner").order_by("name"), PER_PAGE).get_page(request.GET.get("page"))
    context: dict[str, Any] = {
        "rows": _rows(list(pages), now),
        "pages": pages,
        "asked": asked,
        "is_narrowed": any(asked.values()),
        "states": STATES,
        "keys": KEYS,
        "may_add": user.has_perm("policy.add_agent"),
        "sees_all": user.has_perm("policy.view_agent") or user.has_perm("policy.change_agent"),
    }
    return page(request, "portal/agents.html", "Agents", **context)


@for_people("GET", "HEAD", "POST")
def new(request: HttpRequest) -> HttpResponse:
    """Makes an agent; its key and secret are in the answer to the POST and nowhere else."""
    user = who(request)
    if not user.has_perm("policy.add_agent"):
        raise PermissionDenied("Making an agent needs the permission policy.add_agent.")
    form = NewAgentForm(user, request.POST if request.method == "POST" else None)
    if form.is_bound and form.is_valid():
        asked = form.cleaned_data
        try:
            made = agents.create(
                asked["name"],
                actor=actor(user),
                owner=asked["owner"].get_username(),
                call=asked["call"],
                call_all=asked.get("call_all", False),
            )
        except agents.AgentError as error:
            form.add_error("name", f"{error}.")
        else:
            return shown_once(request, made.agent, made.key, jwt_secret=made.jwt_secret)
    status = 422 if form.errors else 200
    return page(request, "portal/agent_new.html", "New agent", status=status, form=form)


def _with_keys(seen: QuerySet[Agent]) -> Any:
    now = timezone.now()
    unending, later = Q(credentials__expires_at=None), Q(credentials__expires_at__gt=now)
    in_force = Q(credentials__revoked_at=None) & (unending | later)
    last_call = Call.objects.filter(agent=OuterRef("pk")).order_by("-id").values("created_at")[:1]
    return seen.annotate(
        open_keys=Count("credentials", filter=in_force),
        next_end=Min("credentials__expires_at", filter=in_force),
        key_used_at=Max("credentials__use__used_at"),
        last_call_at=Subquery(last_call),
    )


def _narrowed(found: Any, asked: dict[str, str], me: int) -> Any:
    if asked["q"]:
        found = found.filter(Q(name__icontains=asked["q"]) | Q(owner__username__icontains=asked["q"]))
    if asked["mine"]:
        found = found.filter(owner=me)
    if asked["state"] in ("active", "shut-out"):
        found = found.filter(is_active=asked["state"] == "active")
    match asked["keys"]:
        case "soon":
            return found.filter(next_end__lte=timezone.now() + SOON)
        case "none":
            return found.filter(open_keys=0)
        case "unused":
            return found.filter(key_used_at=None, last_call_at=None)
    return found


def _rows(listed: list[Agent], now: Any) -> list[dict[str, Any]]:
    calls = agentusage.of_agents([agent.pk for agent in listed], WEEK)
    held = holding.of_users([agent.user_id for agent in listed])
    rows = []
    for agent in listed:
        mine: Any = agent
        callable_ = {each.toolkit for each in held[agent.user_id] if each.verb == "call"}
        used = [moment for moment in (mine.key_used_at, mine.last_call_at) if moment is not None]
        rows.append(
            {
                "agent": agent,
                "open_keys": mine.open_keys,
                "next_end": mine.next_end,
                "ends_soon": mine.next_end is not None and mine.next_end <= now + SOON,
                "used_at": max(used, default=None),
                "toolkits": "every" if None in callable_ else len(callable_),
                "calls": sum(number for (key, _), number in calls.items() if key == agent.pk),
            }
        )
    return rows
