"""Access requests: agents ask for a permission, and who may give it decides here; the others read what became of it."""

from typing import Any

from django.contrib import messages
from django.contrib.auth.models import User
from django.core.exceptions import PermissionDenied
from django.core.paginator import Paginator
from django.db.models import Case, Value, When
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect

from policy import accessrequests, granting
from policy.accessrequests import AccessRequestError
from policy.models import AccessRequest
from policy.views.deciding import MAX_REASON
from policy.views.frame import for_people, page
from registry.actors import in_words, who

PER_PAGE = 30
STATES = {"pending": "warning", "granted": "success", "refused": "danger"}


@for_people("GET", "HEAD")
def listing(request: HttpRequest, id: int | None = None) -> HttpResponse:
    """Those that wait first, then the newest; or the one that a notice leads to."""
    user, state = who(request), request.GET.get("state", "")
    found = accessrequests.visible_to(user)
    if id is not None and not (found := found.filter(pk=id)).exists():
        raise Http404
    if state in STATES:
        found = found.filter(state=state)
    is_settled = Case(When(state=AccessRequest.State.PENDING, then=Value(0)), default=Value(1))
    shown = Paginator(found.order_by(is_settled, "-pk"), PER_PAGE).get_page(request.GET.get("page"))
    governed = set(granting.governed_toolkits(user).order_by().values_list("pk", flat=True))
    rows = [_row(asked, user, asked.toolkit_id in governed) for asked in shown]
    context: dict[str, Any] = {"rows": rows, "shown": shown, "state": state, "decides": bool(governed)}
    return page(request, "policy/access_requests.html", "Access requests", is_alone=id is not None, **context)


@for_people("POST")
def decide(request: HttpRequest, id: int) -> HttpResponse:
    """Grants or refuses with the writer that the API uses, and says what came of it."""
    user = who(request)
    asked = accessrequests.visible_to(user).filter(pk=id).first()
    if asked is None:
        raise Http404
    answer, note = request.POST.get("answer", ""), request.POST.get("note", "")[:MAX_REASON]
    decider = {"grant": accessrequests.grant, "refuse": accessrequests.refuse}.get(answer)
    if decider is None:
        messages.error(request, "Say whether it is granted or refused.")
        return redirect("access-request", id)
    try:
        settled = decider(asked, by=user, note=note)
    except AccessRequestError as error:
        messages.error(request, error.message)
    except PermissionDenied as error:
        messages.error(request, str(error))
    else:
        messages.success(request, f"The request of {settled.agent.name} is {settled.state}.")
    return redirect("access-request", id)


def _row(asked: AccessRequest, user: User, is_governed: bool) -> dict[str, Any]:
    """A request, and what this person can do about it; whose toolkit it is was looked up for all at once."""
    is_open = asked.state == AccessRequest.State.PENDING
    is_own = granting.gains(user, asked.agent) and not user.is_superuser
    return {
        "asked": asked,
        "by": in_words(asked.requested_by),
        "tone": STATES[asked.state],
        "may_grant": is_open and is_governed and not is_own,
        "may_refuse": is_open and is_governed,
        "waits_for_others": is_open and (is_own or not is_governed),
    }
