"""Granted but unused: permissions to call that no call has needed for a month, or a quarter."""

from datetime import timedelta
from typing import Any

from django.core.paginator import Paginator
from django.db.models import Q
from django.http import HttpRequest, HttpResponse
from django.utils import timezone
from guardian.models import UserObjectPermission

from execution.portal import agentusage, given
from execution.portal.frame import for_people, page
from execution.portal.standing import Standing, standing
from policy import agents
from policy.models import Agent
from registry.models import Toolkit

SPANS = (30, 90)  # days; the totals of days reach that far
PER_PAGE = 50
_CALL = {"permission__codename": "call_toolkit", "content_type__app_label": "registry"}


@for_people("GET", "HEAD")
def overview(request: HttpRequest) -> HttpResponse:
    """Of the agents that this person answers for, and of the toolkits whose permissions they see."""
    me = standing(request)
    assert me is not None  # for_people saw to it
    days = SPANS[1] if request.GET.get("days") == str(SPANS[1]) else SPANS[0]
    text = request.GET.get("q", "")[:100].replace("\0", "")
    found = pairs(me, days)
    if text:
        wanted = text.casefold()
        found = [row for row in found if wanted in f"{row['agent'].name} {row['toolkit'].name}".casefold()]
    pages = Paginator(found, PER_PAGE).get_page(request.GET.get("page"))
    context: dict[str, Any] = {
        "may_ask": me.may_ask_why,
        "rows": list(pages),
        "pages": pages,
        "days": days,
        "spans": SPANS,
        "text": text,
        "found": len(found),
    }
    return page(request, "portal/unused.html", "Granted but unused", **context)


def pairs(me: Standing, days: int) -> list[dict[str, Any]]:
    """Agent and toolkit where 'call' was given to the agent itself, longer ago than the span, and never used in it."""
    mine = Agent.objects.filter(_answered_for(me)).select_related("owner")
    direct = UserObjectPermission.objects.filter(user__agent__isnull=False, **_CALL)
    if not me.user.is_superuser:
        seen = agents.visible_to(me.user).order_by().values("user")
        direct = direct.filter(Q(user__in=seen) | Q(object_pk__in=[str(key) for key in me.counted]))
    held = [(user, int(key)) for user, key in direct.values_list("user_id", "object_pk")]
    by_user = {agent.user_id: agent for agent in mine}
    toolkits = Toolkit.objects.in_bulk({key for _, key in held})
    calls = agentusage.of_agents(mine.order_by().values("pk"), days)
    fresh = given.since(timezone.now() - span(days))
    found = []
    for user, key in held:
        agent, toolkit = by_user.get(user), toolkits.get(key)
        if agent is None or toolkit is None or calls[agent.pk, key]:
            continue
        if (toolkit.name, f"agent:{agent.name}", "call") in fresh:
            continue  # nobody has had the time to use it
        found.append({"agent": agent, "toolkit": toolkit, "may_take": me.gives_calls_of(key)})
    return sorted(found, key=lambda row: (row["agent"].name, row["toolkit"].name))


def span(days: int) -> timedelta:
    return timedelta(days=days)


def _answered_for(me: Standing) -> Q:
    if me.user.is_superuser:
        return Q()
    holders = UserObjectPermission.objects.filter(object_pk__in=[str(key) for key in me.counted], **_CALL)
    seen = agents.visible_to(me.user).order_by().values("pk")
    return Q(pk__in=seen) | Q(user__in=holders.order_by().values("user"))
