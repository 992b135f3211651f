"""One call as a timeline, for the people who may see it; and the two things they may do about it."""

from typing import Any
from uuid import UUID

from django.contrib import admin, messages
from django.contrib.auth.decorators import login_required
from django.contrib.auth.models import User
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_GET, require_POST

from execution import access, breakglass, calls, losses
from execution.forms import BreakGlassForm, SettleForm
from execution.models import Call, State
from execution.portal.query import Query, Term
from execution.portal.search import address
from execution.portal.shelf import pages_for
from execution.timeline import timeline_of
from execution.tones import DOORS, LABELS
from policy import agents
from policy.breakglass import PERMISSION, BreakGlassError
from registry.actors import who


@never_cache
@require_GET
@login_required
def timeline(request: HttpRequest, id: UUID) -> HttpResponse:
    """The whole page; it renews its story by itself while the call is open."""
    call = _visible(request, id)
    context = {**admin.site.each_context(request), **_story(request, call), "title": "Call", "subtitle": call.tool_ref}
    return render(request, "execution/timeline.html", context)


@never_cache
@require_GET
def story(request: HttpRequest, id: UUID) -> HttpResponse:
    """The part of the page that moves; 204 if it is as the browser has it."""
    if not request.user.is_authenticated:
        return HttpResponse(status=204, headers={"HX-Refresh": "true"})  # the whole page then asks to log in
    context = _story(request, _visible(request, id))
    if request.GET.get("seen") == context["timeline"].version:
        return HttpResponse(status=204)
    return render(request, "execution/story.html", context)


@require_POST
@login_required
def cancel(request: HttpRequest, id: UUID) -> HttpResponse:
    """Take an open call back."""
    call = _visible(request, id)
    if not access.may_cancel(request.user, None, call):
        messages.error(request, "Only the owner of the agent that made the call may cancel it.")
    elif not call.is_open:
        messages.warning(request, f"The call had already ended: {call.get_state_display()}.")
    elif calls.cancel(call, actor=_actor(request)).is_open:
        messages.info(request, "The tool was told to stop; the call ends when it does.")
    else:
        messages.success(request, "The call is cancelled and will not run.")
    return redirect("subject-call", id)


@require_POST
@login_required
def settle(request: HttpRequest, id: UUID) -> HttpResponse:
    """Say what became of a call whose worker was lost."""
    call = _visible(request, id)
    form = SettleForm(request.POST)
    if not access.may_settle(request.user, None, call):
        messages.error(request, "Only a person who may publish the toolkit may settle its calls.")
    elif not form.is_valid():
        messages.error(
            request, " ".join(f"{name}: {' '.join(map(str, errors))}" for name, errors in form.errors.items())
        )
    elif losses.settle(
        call,
        actor=_actor(request),
        succeeded=form.cleaned_data["outcome"] == "succeeded",
        reason=form.cleaned_data["reason"],
    ):
        messages.success(request, "The outcome is settled.")
    else:
        messages.warning(request, "Only a call of unknown outcome can be settled; this one has moved on.")
    return redirect("subject-call", id)


@require_POST
@login_required
def break_glass(request: HttpRequest, id: UUID) -> HttpResponse:
    """Let a denied or undecided call run, with a reason."""
    call = _visible(request, id)
    form = BreakGlassForm(request.POST)
    if not form.is_valid():
        messages.error(
            request, " ".join(f"{name}: {' '.join(map(str, errors))}" for name, errors in form.errors.items())
        )
        return redirect("subject-call", id)
    told = form.cleaned_data
    try:
        ran = breakglass.run(call.pk, by=who(request), reason=told["reason"], arguments=told["arguments"])
    except BreakGlassError as error:
        messages.error(request, error.message)
        return redirect("subject-call", id)
    messages.warning(request, "The glass is broken: the call runs now, people were told, and another one reviews it.")
    return redirect("subject-call", ran.pk)


def _visible(request: HttpRequest, id: UUID) -> Call:
    seen = access.visible_calls(request.user, None).select_related("agent", "tool__version__toolkit")
    call = seen.filter(pk=id).first()
    if call is None:
        raise Http404
    return call


def _story(request: HttpRequest, call: Call) -> dict[str, Any]:
    is_agent_seen = agents.visible_to(who(request)).filter(pk=call.agent_id).exists()
    return {
        "timeline": timeline_of(call),
        "tool_url": pages_for(who(request), [call.tool]).get(call.tool.pk, "") if call.tool else "",
        "agent_url": reverse("portal-agent", args=[call.agent.name]) if is_agent_seen else "",
        "trace_url": address("calls", Query((Term("trace", call.trace_id),))) if call.trace_id else "",
        "evidence_url": reverse("evidence-of-call", args=[call.pk]),
        "call": call,
        "label": LABELS.get(call.state, ""),
        "door": DOORS.get(call.door, call.door),
        "glass_form": BreakGlassForm()
        if call.state in (State.AWAITING_APPROVAL, State.DENIED) and call.tool and request.user.has_perm(PERMISSION)
        else None,
        "may_cancel": call.is_open and not call.cancel_requested and access.may_cancel(request.user, None, call),
        "settle_form": SettleForm()
        if call.state == State.UNKNOWN and access.may_settle(request.user, None, call)
        else None,
    }


def _actor(request: HttpRequest) -> str:
    assert isinstance(request.user, User)  # login_required saw to it
    return f"user:{request.user.get_username()}"
