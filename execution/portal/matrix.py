"""Permissions as a matrix: agents, people or groups down, toolkits across; each cell leads to giving and taking."""

from collections import defaultdict
from dataclasses import dataclass
from typing import Any

from django.contrib.auth.models import Group, User
from django.core.paginator import Page, Paginator
from django.db.models import Q, QuerySet
from django.http import HttpRequest, HttpResponse

from execution.portal import holding
from execution.portal.frame import for_people, page
from execution.portal.standing import Standing, standing
from policy import agents
from policy.granting import FOR_AGENTS, VERBS
from policy.models import Agent
from registry.actors import AGENT
from registry.models import Toolkit

ROWS, COLUMNS = 25, 10
KINDS = {"agents": "Agents", "people": "People", "groups": "Groups"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Holder:
    """A row: an agent, a person or a group."""

    key: int  # of its user, or of the group
    name: str
    full: str  # "agent:NAME", "user:NAME" or "group:NAME"
    note: str = ""
    is_open: bool = False  # whether the viewer may open its own page


@for_people("GET", "HEAD")
def overview(request: HttpRequest) -> HttpResponse:
    """Of the toolkits whose permissions this person may read: those they give them on, or audit."""
    me = standing(request)
    assert me is not None  # for_people saw to it
    asked = {name: request.GET.get(name, "")[:100].replace("\0", "") for name in ("who", "q", "toolkit", "may")}
    kind = asked["who"] if asked["who"] in KINDS else "agents"
    verb = asked["may"] if asked["may"] in VERBS else ""
    toolkits = _toolkits(me)
    narrowed = toolkits.filter(name__icontains=asked["toolkit"]) if asked["toolkit"] else toolkits
    columns = Paginator(narrowed.order_by("name"), COLUMNS).get_page(request.GET.get("columns"))
    shown = list(columns)
    scope = None if me.user.is_superuser else me.counted
    pages = Paginator(_holders(kind, me, scope, asked["q"], verb), ROWS).get_page(request.GET.get("page"))
    context: dict[str, Any] = {
        "may_ask": me.may_ask_why,
        "kinds": KINDS.items(),
        "kind": kind,
        "asked": asked,
        "is_narrowed": any(asked[name] for name in ("q", "toolkit", "may")),
        "verbs": FOR_AGENTS if kind == "agents" else VERBS,
        "columns": columns,
        "toolkits": shown,
        "pages": pages,
        "rows": _rows(kind, me, pages, shown) if shown else [],
        "may_add": me.user.is_staff and me.has("registry.add_toolkit"),
        "has_toolkits": bool(shown) or toolkits.exists(),
    }
    return page(request, "portal/permissions.html", "Permissions", **context)


def _toolkits(me: Standing) -> QuerySet[Toolkit]:
    return Toolkit.objects.all() if me.user.is_superuser else Toolkit.objects.filter(pk__in=me.counted)


def _holders(kind: str, me: Standing, scope: frozenset[int] | None, text: str, verb: str) -> Any:
    """Who holds something on these toolkits; of agents also those that this person sees anyway."""
    if kind == "groups":
        held = Group.objects.filter(pk__in=holding.groups_on(scope, verb)).order_by("name")
        return held.filter(name__icontains=text) if text else held
    on_them = holding.users_on(scope, verb)
    if kind == "people":
        people = User.objects.filter(on_them | _owners(scope, verb)).exclude(username__startswith=AGENT)
        return (people.filter(username__icontains=text) if text else people).order_by("username")
    holders = Agent.objects.filter(user__in=User.objects.filter(on_them).order_by().values("pk"))
    if not verb:
        holders = Agent.objects.filter(
            Q(pk__in=holders.order_by().values("pk")) | Q(pk__in=agents.visible_to(me.user).order_by().values("pk"))
        )
    return (holders.filter(name__icontains=text) if text else holders).order_by("name")


def _owners(scope: frozenset[int] | None, verb: str) -> Q:
    if verb:
        return Q(pk__in=[])
    owned = Toolkit.objects.filter(owner__isnull=False)
    return Q(pk__in=(owned if scope is None else owned.filter(pk__in=scope)).order_by().values("owner"))


def _rows(kind: str, me: Standing, pages: Page[Any], toolkits: list[Toolkit]) -> list[dict[str, Any]]:
    holders = [_holder(each, me) for each in pages]
    keys, on = [each.key for each in holders], [toolkit.pk for toolkit in toolkits]
    held = holding.of_groups(keys, on) if kind == "groups" else holding.of_users(keys, on)
    rows = []
    for holder in holders:
        by_toolkit: defaultdict[int | None, dict[str, str]] = defaultdict(dict)
        for each in held[holder.key]:
            by_toolkit[each.toolkit].setdefault(each.verb, each.group)
        cells = [_cell(toolkit, by_toolkit[toolkit.pk], holder) for toolkit in toolkits]
        everywhere = [verb for verb in VERBS if verb in by_toolkit[None]]
        rows.append({"holder": holder, "everywhere": everywhere, "cells": cells})
    return rows


def _cell(toolkit: Toolkit, verbs: dict[str, str], holder: Holder) -> dict[str, Any]:
    owns = holder.full.startswith("user:") and toolkit.owner_id == holder.key
    held = [{"verb": verb, "group": verbs[verb]} for verb in VERBS if verb in verbs]
    return {"toolkit": toolkit, "held": held, "owns": owns}


def _holder(one: Agent | User | Group, me: Standing) -> Holder:
    if isinstance(one, Agent):
        note = "" if one.is_active else "shut out"
        is_open = one.owner_id == me.user.pk or me.has("policy.view_agent", "policy.change_agent")
        return Holder(key=one.user_id, name=one.name, full=f"{AGENT}{one.name}", note=note, is_open=is_open)
    if isinstance(one, Group):
        return Holder(key=one.pk, name=one.name, full=f"group:{one.name}")
    note = "superuser: may do everything" if one.is_superuser else "" if one.is_active else "disabled"
    return Holder(key=one.pk, name=one.username, full=f"user:{one.username}", note=note)
