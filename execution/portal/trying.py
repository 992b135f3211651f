"""The addresses behind a try: send the form, follow the call, let an agent in or ask for it."""

from typing import Any
from uuid import UUID

from django.contrib import messages
from django.contrib.auth.models import User
from django.db import transaction
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.cache import never_cache

from execution.portal import tryit
from execution.portal.callers import OWN, agents_of
from execution.portal.frame import for_people
from execution.portal.shelf import page_of
from execution.portal.toolpage import chosen, shown_page, versions_of
from execution.portal.tryit import Trial, try_context
from policy import accessrequests, agents, permissions
from policy.accessrequests import AccessRequestError
from policy.agents import AgentError
from policy.models import Agent
from registry.actors import who
from registry.models import Toolkit

MAX_REASON = 2_000


@for_people("POST")
def run(request: HttpRequest, toolkit: str, name: str) -> HttpResponse:
    """Makes the call, or shows what is wrong with the form; sent twice, it is one call."""
    user, versions = who(request), versions_of(request, toolkit, name)
    tool = chosen(versions, request.POST.get("version", ""))
    trial = Trial.posted(tool, request.POST)
    agent = _able(user, tool.version.toolkit, trial.agent)
    if agent is None:
        trial.errors.append(f"Choose an agent of yours that may call {tool.version.toolkit.name}.")
    panel: dict[str, Any] | None = None
    if agent is not None and not trial.is_wrong:
        outcome = tryit.call(user, tool, agent, trial)
        panel = tryit.panel_after(outcome)
        trial.renew()
    trial.forget()
    if request.headers.get("HX-Request"):
        return render(request, "portal/try.html", try_context(user, tool, trial, panel))
    if panel is None or "id" not in panel:
        return shown_page(request, versions, tool, trial, panel, status=422)
    return redirect(f"{page_of(tool)}?version={tool.version.version}&call={panel['id']}#try")


@never_cache
def tried(request: HttpRequest, id: UUID) -> HttpResponse:
    """What has become of a call meanwhile; 204 if that is what the browser shows."""
    if not request.user.is_authenticated:
        return HttpResponse(status=204, headers={"HX-Refresh": "true"})  # the whole page then asks to log in
    return _tried(request, id)


@for_people("GET", "HEAD")
def _tried(request: HttpRequest, id: UUID) -> HttpResponse:
    call = tryit.made_by(who(request), id)
    if call is None:
        raise Http404
    if request.GET.get("seen") == call.state:
        return HttpResponse(status=204)
    return render(request, "portal/try_panel.html", {"panel": tryit.panel_of(call)})


@for_people("POST")
def let_in(request: HttpRequest, toolkit: str, name: str) -> HttpResponse:
    """Gives one of the person's agents the permission, if they may; else asks those who may."""
    user = who(request)
    tool = chosen(versions_of(request, toolkit, name), request.POST.get("version", ""))
    reason = request.POST.get("reason", "").replace("\0", "").strip()[:MAX_REASON]
    is_gift = "give" in request.POST
    try:
        if not (is_gift or reason):
            raise AgentError("Say why the agent needs it; whoever decides reads that.")
        with transaction.atomic():  # an agent that was made for nothing is not kept
            agent = _mine(user, request.POST.get("agent", ""))
            if is_gift:
                permissions.give(tool.version.toolkit, "call", agent, by=user)
                messages.success(request, f"{agent.name} may now call {tool.version.toolkit.name}.")
            else:
                accessrequests.ask(agent, tool.version.toolkit, reason=reason, by=user)
                messages.success(request, f"Asked. {agent.name} may call as soon as somebody has agreed.")
    except (AccessRequestError, AgentError) as error:
        messages.error(request, str(error))
    return redirect(f"{page_of(tool)}?version={tool.version.version}#try")


def _able(user: User, toolkit: Toolkit, key: str) -> Agent | None:
    """The agent that was chosen, if it is one of the person's that may call."""
    return next((each.agent for each in agents_of(user, toolkit) if each.key == key and each.may_call), None)


def _mine(user: User, key: str) -> Agent:
    if key == OWN:
        return agents.for_person(user)
    found = Agent.objects.select_related("user", "owner").filter(owner=user, name=key).first()
    if found is None:
        raise Http404
    return found
