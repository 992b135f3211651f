"""One agent: its keys, what it may call and does call, and what waits for it."""

from typing import Any

from django.db.models import F
from django.http import HttpRequest, HttpResponse
from django.utils import timezone

from execution.models import State
from execution.portal import agentusage, given, holding, unused
from execution.portal.frame import for_people, page
from execution.portal.keys import DAY, LIVES, OVERLAPS, seen
from execution.portal.standing import Standing, standing
from execution.tones import LABELS
from execution.viewer import Viewer
from policy import accessrequests, agents
from policy.models import AccessRequest, Agent
from registry.actors import who
from registry.models import Toolkit

RECENT = 10
MOST_KEYS = 50
_HEAVY = ("input", "result", "decision", "warnings", "sealed", "sealed_answer")


@for_people("GET", "HEAD")
def show(request: HttpRequest, name: str) -> HttpResponse:
    """Everything about one agent that its owner answers for."""
    agent, user, me = seen(request, name), who(request), standing(request)
    assert me is not None  # for_people saw to it
    viewer, now = Viewer(user=user), timezone.now()
    mine = viewer.calls().filter(agent=agent).defer(*_HEAVY)
    lately = list(mine.order_by("-id")[:RECENT])
    keys = _keys(agent, now)
    used = [each["used_at"] for each in keys if each["used_at"]] + [call.created_at for call in lately[:1]]
    reach = _reach(agent, me)
    context: dict[str, Any] = {
        "agent": agent,
        "keys": keys,
        "used_at": max(used, default=None),
        "reach": reach,
        "calls_all": agent.user.has_perm("registry.call_toolkit"),
        "calls_week": sum(each["week"] for each in reach),
        "lately": [{"call": call, "label": LABELS.get(call.state, "")} for call in lately],
        "waiting": mine.filter(state=State.AWAITING_APPROVAL).select_related("approval").order_by("-id")[:RECENT],
        "requests": accessrequests.visible_to(user).filter(agent=agent, state=AccessRequest.State.PENDING)[:RECENT],
        "may_change": agents.may_change(user, agent),
        "may_ask": me.may_ask_why,
        "overlaps": OVERLAPS.items(),
        "usual": DAY,
        "lives": LIVES.items(),
    }
    return page(request, "portal/agent.html", f"Agent {agent.name}", **context)


def _keys(agent: Agent, now: Any) -> list[dict[str, Any]]:
    """Those that open the door first, then the newest of those that ended."""
    rows = []
    for key in agent.credentials.annotate(used_at=F("use__used_at")).order_by("-created_at", "-pk")[:MOST_KEYS]:
        is_over = key.expires_at is not None and key.expires_at <= now
        state = "revoked" if key.revoked_at else "expired" if is_over else "in force"
        rows.append({"key": key, "state": state, "is_open": state == "in force", "used_at": key.used_at})  # type: ignore[attr-defined]
    return sorted(rows, key=lambda row: not row["is_open"])


def _reach(agent: Agent, me: Standing) -> list[dict[str, Any]]:
    """The toolkits that it may call, why, and how often it did; of all of them, if it may call all, those it uses."""
    held = [each for each in holding.of_users([agent.user_id])[agent.user_id] if each.verb == "call"]
    everywhere = [each for each in held if each.toolkit is None]
    week, month, quarter = (agentusage.of_agents([agent.pk], days) for days in (7, *unused.SPANS))
    keys = {each.toolkit for each in held if each.toolkit} | ({key for _, key in quarter} if everywhere else set())
    toolkits = Toolkit.objects.filter(pk__in=keys).order_by("name")
    fresh = given.since(timezone.now() - unused.span(unused.SPANS[0]))
    rows = []
    for toolkit in toolkits:
        own = [each for each in held if each.toolkit == toolkit.pk]
        key = (agent.pk, toolkit.pk)
        given_at = fresh.get((toolkit.name, f"agent:{agent.name}", "call"))
        rows.append(
            {
                "toolkit": toolkit,
                "sources": [each.source for each in (*own, *everywhere)],
                "week": week[key],
                "month": month[key],
                "quarter": quarter[key],
                "is_unused": not month[key] and given_at is None,
                "given_at": given_at,
                "is_open": me.reads_permissions_of(toolkit.pk),
                "may_take": me.gives_calls_of(toolkit.pk) and any(each.group == holding.DIRECT for each in own),
            }
        )
    return rows
