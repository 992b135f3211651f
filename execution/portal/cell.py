"""One cell of the matrix: what one holder may do with one toolkit, where it comes from, and giving and taking it."""

from typing import Any
from urllib.parse import urlencode

from django.contrib import messages
from django.contrib.auth.models import Group
from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import reverse

from audit.models import Event
from execution.portal import given, holding
from execution.portal.frame import for_people, page
from execution.portal.standing import standing
from execution.sentences import who as in_words
from execution.viewer import Viewer
from policy import permissions
from policy.admin.permissions import MEANING
from policy.granting import VERBS, Holder, impossible, may_give, may_list, obstacle
from policy.models import Agent
from policy.permissions import ImpossiblePermission
from registry import access
from registry.actors import who
from registry.models import Toolkit

BACK = {"unused": "portal-unused", "matrix": "portal-permissions"}


@for_people("GET", "HEAD", "POST")
def show(request: HttpRequest) -> HttpResponse:
    """By the writers that the API has, so that a page gives and takes what the API would."""
    toolkit = _toolkit(request)
    if toolkit is not None and not may_list(who(request), toolkit):
        raise PermissionDenied(f"Who may do what with {toolkit} is told to those who give permissions or audit it.")
    holder = _holder(request) if toolkit is not None else None
    if toolkit is None or holder is None:
        return _unknown(request, toolkit)
    if request.method == "POST":
        return _change(request, toolkit, holder)
    name = permissions.name_of(holder)
    asked = request.GET.get("take", "")
    context: dict[str, Any] = {
        "may_ask": _may_ask(request),
        "toolkit": toolkit,
        "holder": name,
        "agent": holder if isinstance(holder, Agent) else None,
        "verbs": _verbs(request, toolkit, holder),
        "taking": asked if asked in VERBS else "",
        "back": request.GET.get("back", "") if request.GET.get("back") in BACK else "",
        "owns": toolkit.owner_id is not None and toolkit.owner_id == getattr(holder, "pk", None) and _is_user(holder),
    }
    return page(request, "portal/permission.html", f"Permissions of {name} on {toolkit.name}", **context)


def _verbs(request: HttpRequest, toolkit: Toolkit, holder: Holder) -> list[dict[str, Any]]:
    user, name = who(request), permissions.name_of(holder)
    told = given.latest(Viewer(user=user), toolkit.name, name)
    if isinstance(holder, Group):
        held = holding.of_groups([holder.pk], [toolkit.pk])[holder.pk]
    else:
        key = holder.user_id if isinstance(holder, Agent) else holder.pk
        held = holding.of_users([key], [toolkit.pk])[key]
    rows = []
    for verb in VERBS:
        mine = [each for each in held if each.verb == verb]
        has = any(each.toolkit is not None and each.group == holding.DIRECT for each in mine)
        never = impossible(verb, holder)
        if never and not mine:
            continue
        why_not = obstacle(user, verb, toolkit, holder)
        may_take = has and may_give(user, verb, toolkit)  # also from oneself, which giving is not
        rows.append(
            {
                "verb": verb,
                "meaning": MEANING[verb],
                "has": has,
                "sources": [each.source for each in mine],
                "given": _told(told[verb]) if has and verb in told else None,
                "may_take": may_take,
                "may_give": not has and not why_not and not never,
                "why_not": why_not if not has else "" if may_take else why_not,
            }
        )
    return rows


def _change(request: HttpRequest, toolkit: Toolkit, holder: Holder) -> HttpResponse:
    what, _, verb = request.POST.get("change", "").partition(" ")
    if what not in ("give", "take"):
        raise Http404
    name = permissions.name_of(holder)
    try:
        if what == "give":
            permissions.give(toolkit, verb, holder, by=who(request))
            messages.success(request, f"{name} may now {verb} {toolkit.name}.")
        else:
            permissions.take(toolkit, verb, holder, by=who(request))
            messages.success(request, f"{name} may no longer {verb} {toolkit.name}.")
    except ImpossiblePermission as error:
        messages.error(request, str(error))
    back = request.POST.get("back", "")
    return redirect(BACK[back]) if back in BACK else redirect(address(name, toolkit))


def address(holder: str, toolkit: Toolkit) -> str:
    """The page of one cell."""
    return f"{reverse('portal-permission')}?{urlencode({'holder': holder, 'toolkit': toolkit.name})}"


def _told(event: Event) -> dict[str, Any]:
    return {"by": in_words(event.actor), "at": event.at, "event": event.pk}


def _toolkit(request: HttpRequest) -> Toolkit | None:
    name = request.GET.get("toolkit", "").strip().replace("\0", "")
    found: Toolkit | None = access.visible_toolkits(who(request)).filter(name__iexact=name).first() if name else None
    return found


def _holder(request: HttpRequest) -> Holder | None:
    name = request.GET.get("holder", "").strip().replace("\0", "")
    return permissions.holder_named(name) if name else None


def _may_ask(request: HttpRequest) -> bool:
    me = standing(request)
    return me is not None and me.may_ask_why


def _is_user(holder: Holder) -> bool:
    return not isinstance(holder, Agent | Group)


def _unknown(request: HttpRequest, toolkit: Toolkit | None) -> HttpResponse:
    """The form to name both; what could not be found is said so, of holders only to those who may read them."""
    asked = {name: request.GET.get(name, "")[:160] for name in ("holder", "toolkit")}
    wrong = ""
    if asked["toolkit"] and toolkit is None:
        wrong = "There is no toolkit of this name that you may see."
    elif asked["holder"]:
        wrong = "There is nobody of this name. Write user:NAME, group:NAME or agent:NAME."
    toolkits = access.visible_toolkits(who(request)).order_by("name").values_list("name", flat=True)[:200]
    context: dict[str, Any] = {"may_ask": _may_ask(request), "asked": asked, "error": wrong, "toolkits": toolkits}
    status = 404 if wrong else 200
    return page(request, "portal/permission_form.html", "Give a permission", status=status, **context)
