"""Trying policy on pages: one question, many recorded calls, and a shadow's differences."""

from datetime import datetime
from typing import Any
from urllib.parse import urlencode
from uuid import UUID

from django.contrib.auth.models import User
from django.core.paginator import Paginator
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils import timezone
from django.views.decorators.cache import never_cache

from policy import readers, replays, revisions
from policy.api.differences import counted
from policy.decision import Limits
from policy.evaluation import explained
from policy.models import Agent, Difference, Replay, Revision
from policy.views.portal import EFFECTS, found, page, policy_page
from policy.views.trialforms import QuestionForm, ReplayForm
from policy.views.turns import WORDS, Turns
from registry.actors import who
from registry.models import Tool

PER_PAGE = 50
OFFERED = 300  # names that a field proposes while one types
RECENT = 20
BY = {"default": "by default", "permission": "for its permissions", "error": "by an error"}  # what is no rule
LISTS = (
    ("newly_denied", "Newly denied", "deny"),
    ("newly_asked", "Newly asked", "ask"),
    ("newly_allowed", "Newly allowed", "allow"),
)


@policy_page(readers.may_replay, "GET", "HEAD", "POST")
def evaluate(request: HttpRequest) -> HttpResponse:
    """Answers a question; it is posted, so that the input stays out of addresses and logs."""
    chosen = {name: request.GET[name] for name in ("agent", "tool_id", "revision") if name in request.GET}
    form = QuestionForm(request.POST if request.method == "POST" else None, initial=chosen)
    decision = None
    if form.is_bound and form.is_valid():
        asked = form.cleaned_data
        number = int(asked["revision"]) if asked["revision"] else None
        decision = explained(
            asked["agent"], asked["tool_id"], asked["input"], user_id=asked["user_id"], revision=number
        )
    context: dict[str, Any] = {
        "form": form,
        "decision": decision,
        "kind": EFFECTS[decision.effect.value] if decision else "",
        "limits": _told(decision.limits) if decision and decision.limits else [],
        "checks": [{"finding": each, "kind": EFFECTS[each.effect.value]} for each in decision.findings]
        if decision
        else [],
        "agents": Agent.objects.values_list("name", flat=True)[:OFFERED],
        "tools": sorted({tool.tool_id.partition("@")[0] for tool in _some_tools()}),
    }
    status = 422 if form.errors else 200
    return page(request, "policy/policy_evaluate.html", "Evaluate", tab="policy-evaluate", status=status, **context)


@policy_page(readers.may_replay, "GET", "HEAD", "POST")
def replay_list(request: HttpRequest) -> HttpResponse:
    """Asks for a replay, and shows the recent ones."""
    newest = Revision.objects.order_by("-number").values_list("number", flat=True).first()
    initial = {"revision": request.GET.get("revision") or str(newest or 0)}
    form = ReplayForm(request.POST if request.method == "POST" else None, initial=initial)
    if form.is_bound and form.is_valid():
        try:
            asked = replays.ask(int(form.cleaned_data["revision"]), form.cleaned_data["last"], by=who(request))
        except replays.ReplayError as error:
            form.add_error(None, str(error))
        else:
            return redirect("policy-replay", asked.pk)
    recent = Replay.objects.select_related("requested_by").defer("result")[:RECENT]
    status = 422 if form.errors else 200
    return page(
        request, "policy/policy_replays.html", "Replay", tab="policy-replays", status=status, form=form, recent=recent
    )


@policy_page(readers.may_replay, "GET", "HEAD")
def replay(request: HttpRequest, id: UUID) -> HttpResponse:
    """How far a replay is, renewed by itself, and what it found."""
    row = _replay(id)
    title = f"Replay of {'revision ' + str(row.revision) if row.revision else 'the defaults'}"
    return page(request, "policy/policy_replay.html", title, tab="policy-replays", **_story(row, who(request)))


@never_cache
def replay_story(request: HttpRequest, id: UUID) -> HttpResponse:
    """The part of the page that moves."""
    if not request.user.is_authenticated:
        return HttpResponse(status=204, headers={"HX-Refresh": "true"})  # the whole page then asks to log in
    return _replay_story(request, id)


@policy_page(readers.may_replay, "GET", "HEAD")
def _replay_story(request: HttpRequest, id: UUID) -> HttpResponse:
    return render(request, "policy/policy_replay_story.html", _story(_replay(id), who(request)))


@policy_page(readers.may_read, "GET", "HEAD")
def shadow(request: HttpRequest) -> HttpResponse:
    """The shadow of this moment and its differences; what a shadow is where there is none."""
    row = Revision.objects.filter(is_shadow=True).first()
    if row is not None:
        return redirect("policy-differences", row.number)
    seen = Difference.objects.order_by().values_list("shadow_revision", flat=True).distinct()
    earlier = Revision.objects.filter(number__in=seen)
    drafts = Revision.objects.exclude(state=Revision.State.ACTIVE)[:10]
    context: dict[str, Any] = {"earlier": earlier, "candidates": drafts}
    return page(request, "policy/policy_shadow.html", "Shadow", tab="policy-shadow", **context)


@policy_page(readers.may_read, "GET", "HEAD")
def differences(request: HttpRequest, id: int) -> HttpResponse:
    """Calls that this revision, as a shadow, would have decided otherwise."""
    row = found(id)
    all_of_them = Difference.objects.filter(shadow_revision=row.number)
    agent, turn = request.GET.get("agent", ""), request.GET.get("turn", "")
    chosen = all_of_them.select_related("agent").order_by("-id")
    if agent:
        chosen = chosen.filter(agent__name=agent)
    if turn.count("-") == 1:
        live_effect, shadow_effect = turn.split("-")
        chosen = chosen.filter(live_effect=live_effect, shadow_effect=shadow_effect)
    pages = Paginator(chosen, PER_PAGE).get_page(request.GET.get("page"))
    rows = [
        {"one": one, "live_kind": EFFECTS.get(one.live_effect, ""), "shadow_kind": EFFECTS.get(one.shadow_effect, "")}
        for one in pages
    ]
    counts = counted(all_of_them)
    context: dict[str, Any] = {
        "revision": row,
        "live": revisions.live(),
        "counts": counts,
        "turns": Turns(
            "turns", [(each["live_effect"], each["shadow_effect"], each["count"]) for each in counts["effects"]]
        ),
        "rows": rows,
        "pages": pages,
        "query": f"&{urlencode({'agent': agent, 'turn': turn})}" if agent or turn else "",
        "agent": agent,
        "turn": turn,
    }
    title = f"Shadow: revision {row.number}"
    return page(request, "policy/policy_differences.html", title, tab="policy-shadow", **context)


def _told(limits: Limits) -> list[str]:
    words = {"per_minute": "a minute", "per_day": "a day", "at_once": "at once"}
    return [f"{most} {words[name]}" for name, most in limits.as_json().items() if most is not None]


def _replay(id: UUID) -> Replay:
    row = Replay.objects.select_related("requested_by").filter(pk=id).first()
    if row is None:
        raise Http404
    return row


def _story(row: Replay, user: User) -> dict[str, Any]:
    result = row.result or {}
    next_step = Revision.objects.filter(number=row.revision).exclude(state=Revision.State.ACTIVE)
    summary = result.get("summary", {})
    return {
        "replay": row,
        "may_activate": row.state == Replay.State.DONE and readers.may_write(user) and next_step.exists(),
        "is_moving": row.state in (Replay.State.WAITING, Replay.State.RUNNING),
        "is_lost": row.lease_until is not None and row.lease_until < timezone.now(),
        "percent": 100 * row.evaluated // row.total if row.total else 0,
        "undecidable": _dated(result.get("undecidable", [])),
        "summary": summary,
        "turns": Turns("turns", [(turn["was"], turn["now"], turn["count"]) for turn in summary.get("turns", [])]),
        "lists": [
            {
                "title": title,
                "kind": EFFECTS[effect],
                "calls": _dated(result.get(name, [])),
                "count": summary.get(name, 0),
                "name": name,
            }
            for name, title, effect in LISTS
        ],
    }


def _dated(calls: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Calls of a replay with their moment, and with what was decided then in words."""
    return [
        call
        | {
            "when": datetime.fromisoformat(call["at"]),
            "was_told": WORDS.get(call["was"]["effect"], call["was"]["effect"]),
            "was_by": BY.get(call["was"]["rule"], f"by rule “{call['was']['rule']}”"),
        }
        for call in calls
    ]


def _some_tools() -> list[Tool]:
    return list(Tool.objects.callable().select_related("version__toolkit").order_by("name")[:OFFERED])
