"""Answers given on a page: one or several at once, each decided by itself and each told how it went."""

from datetime import timedelta
from typing import Any
from uuid import UUID

from django import forms
from django.contrib import messages
from django.contrib.auth.models import User
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import redirect
from django.utils import timezone

from policy import approvals, grants
from policy.approvals import ApprovalError
from policy.models import Approval
from policy.views.frame import for_people, wants_json
from registry.actors import who

MAX_AT_ONCE = 200
MAX_REASON = 2_000
HOURS = {"1": "an hour", "8": "8 hours", "24": "a day", "168": "7 days", "720": "30 days"}
GONE = ApprovalError(404, "not_found", "There is nothing here, or it is not yours to see")


class AnswerForm(forms.Form):
    """What a person says about one or several questions."""

    answer = forms.ChoiceField(choices=[("approve", "Approve"), ("deny", "Deny")])
    reason = forms.CharField(max_length=MAX_REASON, required=False)


class GrantForm(forms.Form):
    """A yes for later calls as well: how many, how long, and with which arguments."""

    uses = forms.IntegerField(min_value=1, max_value=grants.MAX_USES)
    hours = forms.ChoiceField(choices=list(HOURS.items()))
    when = forms.CharField(max_length=4_000, required=False)
    reason = forms.CharField(max_length=MAX_REASON)


@for_people("POST")
def decide(request: HttpRequest) -> HttpResponse:
    """Decides every question that is named, and reports on each."""
    form, ids = AnswerForm(request.POST), chosen(request)
    if wrong := _wrong(form, ids):
        return _refused(request, ids, wrong)
    said = form.cleaned_data
    return _told(request, [_decided(id, who(request), said["answer"], said["reason"]) for id in ids])


@for_people("POST")
def grant(request: HttpRequest) -> HttpResponse:
    """Approves, and gives a grant for later calls like the first of those that are named."""
    form, ids = GrantForm(request.POST), chosen(request)
    if wrong := _wrong(form, ids):
        return _refused(request, ids, wrong)
    user, said = who(request), form.cleaned_data
    first = _granted(ids[0], user, said)
    others = [_decided(id, user, "approve", said["reason"]) for id in ids[1:]] if first["ok"] else []
    return _told(request, [first, *others])


@for_people("POST")
def revoke(request: HttpRequest, id: UUID) -> HttpResponse:
    """Takes back a yes that has not run yet."""
    user, reason = who(request), request.POST.get("reason", "").strip()[:MAX_REASON]
    try:
        _visible(id, user)
        after = approvals.revoke(id, by=user, reason=reason)
    except ApprovalError as error:
        return _told(request, [_failed(id, error)])
    return _told(request, [_done(after, "revoke")])


def _decided(id: UUID, user: User, answer: str, reason: str) -> dict[str, Any]:
    try:
        _visible(id, user)
        after = approvals.decide(id, by=user, answer=answer, reason=reason)
    except ApprovalError as error:
        return _failed(id, error)
    return _done(after, answer)


def _granted(id: UUID, user: User, said: dict[str, Any]) -> dict[str, Any]:
    until = timezone.now() + timedelta(hours=int(said["hours"]))
    bounds = {"uses": said["uses"], "until": until, "when": said["when"], "reason": said["reason"]}
    try:
        approval = _visible(id, user)
        grants.give(approval, by=user, **bounds)
    except ApprovalError as error:
        return _failed(id, error)
    except grants.GrantError as error:
        return _failed(id, ApprovalError(422, "invalid", str(error)))
    later = f"{said['uses']} later call{'s' if said['uses'] > 1 else ''}"
    return {
        "id": str(id),
        "ok": True,
        "state": "approved",
        "message": f"{approval.tool_ref} is approved, and {later} with it.",
    }


def _visible(id: UUID, user: User) -> Approval:
    approval = approvals.visible_to(user).filter(pk=id).first()
    if approval is None:
        raise GONE
    return approval


def _done(approval: Approval, answer: str) -> dict[str, Any]:
    told = {
        Approval.State.APPROVED: "is approved and runs",
        Approval.State.DENIED: "is denied",
        Approval.State.REVOKED: "was taken back and will not run",
        Approval.State.PENDING: "has your yes; others are still asked",
    }
    outcome = told.get(Approval.State(approval.state), f"is {approval.get_state_display().lower()}")
    return {"id": str(approval.pk), "ok": True, "state": approval.state, "message": f"{approval.tool_ref} {outcome}."}


def _failed(id: UUID, error: ApprovalError) -> dict[str, Any]:
    return {"id": str(id), "ok": False, "status": error.status, "code": error.code, "message": f"{error.message}."}


def chosen(request: HttpRequest) -> list[UUID]:
    """The ids that a form names, each once; one value may hold those of a whole card."""
    found: dict[UUID, None] = {}
    for text in ",".join(request.POST.getlist("id")).split(","):
        try:
            found[UUID(text)] = None
        except ValueError:
            continue
    return list(found)


def _wrong(form: forms.Form, ids: list[UUID]) -> str:
    """Why nothing can be decided; empty if it can."""
    if not form.is_valid():
        return " ".join(f"{name.capitalize()}: {' '.join(map(str, told))}" for name, told in form.errors.items())
    if len(ids) > MAX_AT_ONCE:
        return f"At most {MAX_AT_ONCE} are decided at once; nothing was decided."
    return "" if ids else "Choose what to decide first."


def _refused(request: HttpRequest, ids: list[UUID], message: str) -> HttpResponse:
    if wants_json(request):
        return JsonResponse({"message": message, "results": []}, status=422)
    messages.error(request, message)
    return _back(ids)


def _told(request: HttpRequest, results: list[dict[str, Any]]) -> HttpResponse:
    if wants_json(request):
        return JsonResponse({"results": results})
    for result in results:
        (messages.success if result["ok"] else messages.error)(request, result["message"])
    return _back([UUID(result["id"]) for result in results])


def _back(ids: list[UUID]) -> HttpResponse:
    return redirect("subject-approval", ids[0]) if len(ids) == 1 else redirect("approvals")
