"""Grants in force, each with its meter and a way to end it at once."""

from typing import Any

from django.contrib import messages
from django.contrib.auth.models import User
from django.core.paginator import Paginator
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect

from policy import grants
from policy.models import Grant
from policy.standing import GRANT_STATES, state_of, visible_grants
from policy.views.deciding import MAX_REASON
from policy.views.frame import for_people, page
from registry.actors import who

PER_PAGE = 30
TONES = {"active": "success", "used up": "info", "over": "warning", "revoked": "danger"}


@for_people("GET", "HEAD")
def listing(request: HttpRequest) -> HttpResponse:
    """Those in force; with `?all=1` also those that have ended."""
    user, is_all = who(request), request.GET.get("all") == "1"
    found = visible_grants(user) if is_all else visible_grants(user).filter(GRANT_STATES["active"])
    shown = Paginator(found.order_by("-pk"), PER_PAGE).get_page(request.GET.get("page"))
    rows = [_row(grant) for grant in shown]
    return page(request, "policy/grants.html", "Approvals", rows=rows, shown=shown, is_all=is_all)


@for_people("POST")
def revoke(request: HttpRequest, id: int) -> HttpResponse:
    """From now on no call runs on it."""
    user = who(request)
    grant = _visible(id, user)
    try:
        grants.revoke(grant, by=user, reason=request.POST.get("reason", "")[:MAX_REASON])
    except grants.GrantError as error:
        messages.error(request, f"{error}.")
    else:
        messages.success(request, f"No further call runs on the grant for {grant.tool_ref}.")
    return redirect("inbox-grants")


def _visible(id: int, user: User) -> Grant:
    grant = visible_grants(user).filter(pk=id).first()
    if grant is None:
        raise Http404
    return grant


def _row(grant: Grant) -> dict[str, Any]:
    state = state_of(grant)
    return {"grant": grant, "state": state, "tone": TONES[state], "left": grant.max_uses - grant.used}
