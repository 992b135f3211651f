"""One approval on a page of its own, before and after the decision: links in notices lead here."""

from typing import Any
from uuid import UUID

from django.contrib.auth.models import User
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils import timezone
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_GET

from policy import approvals
from policy.views.cards import WHOLE, cards_of
from policy.views.frame import for_people, page
from policy.views.inbox import grouped
from registry.actors import who


@for_people("GET", "HEAD")
def approval(request: HttpRequest, id: UUID) -> HttpResponse:
    """The whole page; a GET only shows."""
    return page(request, "policy/approval.html", "Approval", **_alone(who(request), id))


@never_cache
@require_GET
def card(request: HttpRequest, id: UUID) -> HttpResponse:
    """The card alone; 204 if the browser has it as it is."""
    if not request.user.is_authenticated:
        return HttpResponse(status=401)
    feed = _alone(who(request), id)
    if request.GET.get("seen") == feed["version"]:
        return HttpResponse(status=204)
    return render(request, "policy/inbox_cards.html", feed)


def _alone(user: User, id: UUID) -> dict[str, Any]:
    found = list(approvals.visible_to(user).filter(pk=id))
    if not found:
        raise Http404
    (only,), _ = cards_of(found, user, most=1, limit=WHOLE)
    groups = grouped([only], "alike")
    return {"version": only.version, "now": timezone.now(), "groups": groups, "only": only, "is_alone": True}
