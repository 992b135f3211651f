"""What surrounds each page about policy: who may open it, the portal's frame, and the tabs between the pages."""

from collections.abc import Callable
from functools import wraps
from typing import Any

from django.contrib import admin
from django.contrib.auth.models import User
from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import reverse

from policy import readers
from policy.models import Revision
from policy.rulespec import RuleSpec
from policy.views.frame import View, for_people
from registry.actors import who

# The colours that unfold gives to its labels.
EFFECTS = {"allow": "success", "ask": "warning", "deny": "danger"}
STATES = {"draft": "info", "active": "success", "retired": ""}

_NEEDS: dict[Callable[[User], bool], str] = {
    readers.may_read: "Reading policy needs the permission to view revisions, or to write policy.",
    readers.may_write: "This needs the permission to write, activate and roll back policy.",
    readers.may_replay: "This needs the permission to write policy, or to see every audit event.",
}


def policy_page(may: Callable[[User], bool], *methods: str) -> Callable[[View], View]:
    """A page for people who `may`, that answers these methods only; the others are told what they lack."""

    def decorate(view: View) -> View:
        @for_people(*methods)
        @wraps(view)
        def inner(request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
            if not may(who(request)):
                raise PermissionDenied(_NEEDS[may])
            return view(request, *args, **kwargs)

        return inner

    return decorate


def page(
    request: HttpRequest, template: str, title: str, *, tab: str, status: int = 200, **context: Any
) -> HttpResponse:
    """A template of ours inside the frame, with the tab that leads to it."""
    user = who(request)
    frame = {
        **admin.site.each_context(request),
        "title": title,
        "content_title": title,
        "tabs": _tabs(user, tab),
        "may_write": readers.may_write(user),
        "may_replay": readers.may_replay(user),
    }
    return render(request, template, {**frame, **context}, status=status)


def found(number: int) -> Revision:
    """The revision of an address."""
    rows = Revision.objects.select_related("created_by", "activated_by")
    revision = rows.filter(number=number).first() if number < 2**31 else None
    if revision is None:
        raise Http404
    return revision


def shown(rule: RuleSpec) -> dict[str, Any]:
    """A rule for the template: its sentence with the condition apart, so that it can be set as code."""
    before, when, after = rule.sentence.partition(rule.when) if rule.when else (rule.sentence, "", "")
    return {
        "rule": rule,
        "effect": rule.effect.value,
        "kind": EFFECTS[rule.effect.value],
        "before": before,
        "when": when,
        "after": after,
    }


def _tabs(user: User, here: str) -> list[dict[str, Any]]:
    pages = (
        ("policy", "Live policy", readers.may_read),
        ("policy-revisions", "Revisions", readers.may_read),
        ("policy-evaluate", "Evaluate", readers.may_replay),
        ("policy-replays", "Replay", readers.may_replay),
        ("policy-shadow", "Shadow", readers.may_read),
    )
    return [{"title": title, "url": reverse(name), "is_here": name == here} for name, title, may in pages if may(user)]
