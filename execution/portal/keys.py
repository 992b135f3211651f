"""Keys on pages: make one, rotate one, end one; a new key is in the answer to the POST and nowhere else."""

from datetime import datetime, timedelta
from typing import Any

from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.utils import timezone

from execution.portal.frame import for_people, page
from policy import agents
from policy.models import Agent, Credential
from registry.actors import actor, who

DAY = 24
OVERLAPS = {0: "at once", 1: "in an hour", DAY: "in a day", 7 * DAY: "in a week", 30 * DAY: "in 30 days"}  # in hours
LIVES = {0: "never", 30: "in 30 days", 90: "in 90 days", 365: "in a year"}  # in days
MAX_LABEL = 100


@for_people("POST")
def make(request: HttpRequest, name: str) -> HttpResponse:
    """A further key."""
    agent = changeable(request, name)
    label = request.POST.get("label", "").strip().replace("\0", "")
    days = _chosen(request, "days", LIVES, 0)
    if len(label) > MAX_LABEL:
        messages.error(request, f"What a key is for is said in {MAX_LABEL} characters at most; no key was made.")
        return redirect("portal-agent", name)
    ends = timezone.now() + timedelta(days=days) if days else None
    try:
        key = agents.new_key(agent, actor=actor(who(request)), label=label, expires_at=ends)
    except agents.AgentError as error:
        messages.error(request, f"No key was made: {error}.")
        return redirect("portal-agent", name)
    return shown_once(request, agent, key, ends=ends)


@for_people("POST")
def rotate(request: HttpRequest, name: str, prefix: str) -> HttpResponse:
    """A new key in place of this one, which goes on for as long as was chosen."""
    agent = changeable(request, name)
    old = _key_of(agent, prefix)
    hours = _chosen(request, "hours", OVERLAPS, DAY)
    try:
        key = agents.rotate_key(old, actor=actor(who(request)), keep=timedelta(hours=hours))
    except agents.AgentError as error:
        messages.error(request, f"The key was not rotated: {error}.")
        return redirect("portal-agent", name)
    made = agent.credentials.get(prefix=agents.prefix_of(key))
    old.refresh_from_db()
    return shown_once(request, agent, key, ends=made.expires_at, old=old)


@for_people("POST")
def revoke(request: HttpRequest, name: str, prefix: str) -> HttpResponse:
    """Ends a key at once."""
    agent = changeable(request, name)
    if agents.revoke_key(_key_of(agent, prefix), actor=actor(who(request))):
        messages.success(request, f"The key plc_{prefix}_… is revoked: it opens no door any more.")
    return redirect("portal-agent", name)


@for_people("POST")
def admission(request: HttpRequest, name: str) -> HttpResponse:
    """Shuts an agent out with all its keys, or lets it in again."""
    agent = changeable(request, name)
    is_let_in = request.POST.get("admit") == "yes"
    if agents.set_active(agent, is_let_in, actor=actor(who(request))):
        said = "may call again" if is_let_in else "is shut out; none of its keys opens the door"
        messages.success(request, f"{agent.name} {said}.")
    return redirect("portal-agent", name)


def seen(request: HttpRequest, name: str) -> Agent:
    """The agent of this name, if it is this person's to see."""
    agent = agents.visible_to(who(request)).select_related("owner", "user").filter(name=name).first()
    if agent is None:
        raise Http404
    return agent


def changeable(request: HttpRequest, name: str) -> Agent:
    agent = seen(request, name)
    if not agents.may_change(who(request), agent):
        raise PermissionDenied("Only the agent's owner, or who may change agents, can do this.")
    return agent


def shown_once(
    request: HttpRequest,
    agent: Agent,
    key: str,
    *,
    jwt_secret: str = "",
    ends: datetime | None = None,
    old: Credential | None = None,
) -> HttpResponse:
    """In the answer itself: a redirect would have to keep the secret somewhere."""
    title = f"Copy the key of {agent.name} now"
    shown: dict[str, Any] = {"agent": agent, "key": key, "jwt_secret": jwt_secret, "ends": ends, "old": old}
    return page(request, "portal/key_shown.html", title, **shown)


def _key_of(agent: Agent, prefix: str) -> Credential:
    found = agent.credentials.filter(prefix=prefix).first()
    if found is None:
        raise Http404
    return found


def _chosen(request: HttpRequest, name: str, offered: dict[int, str], otherwise: int) -> int:
    """One of what was offered; anything else is taken for what stands first in the form."""
    text = request.POST.get(name, "")
    number = int(text) if text.isascii() and text.isdecimal() and len(text) < 6 else -1
    return number if number in offered else otherwise
