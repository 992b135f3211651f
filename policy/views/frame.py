"""What surrounds each page about approvals: the portal's frame, and the tabs between them."""

from collections.abc import Callable
from functools import wraps
from typing import Any

from django.contrib import admin
from django.contrib.auth.decorators import login_required
from django.contrib.auth.models import User
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods

from policy import approvals
from policy.standing import visible_glass
from registry.actors import is_person, who

View = Callable[..., HttpResponse]


def for_people(*methods: str) -> Callable[[View], View]:
    """A page for people with a login, never kept by a browser, that answers these methods only."""

    def decorate(view: View) -> View:
        @never_cache
        @require_http_methods(list(methods))
        @login_required
        @wraps(view)
        def inner(request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
            if not is_person(who(request)):
                raise PermissionDenied
            return view(request, *args, **kwargs)

        return inner

    return decorate


def page(request: HttpRequest, template: str, title: str, **context: Any) -> HttpResponse:
    """A template of ours inside the frame."""
    frame = {**admin.site.each_context(request), "title": title, "tabs": _tabs(request)}
    return render(request, template, {**frame, **context})


def wants_json(request: HttpRequest) -> bool:
    """Whether our own script asks; a form that was sent without it wants a page."""
    return request.headers.get("Accept", "").startswith("application/json")


def pending_for(request: HttpRequest) -> int:
    """The number beside the inbox in the sidebar and above its tab; counted once in a request."""
    if not isinstance(request.user, User):
        return 0
    counted: int | None = getattr(request, "_pending", None)
    if counted is None:
        counted = approvals.to_decide(request.user).count()
        request._pending = counted  # type: ignore[attr-defined]
    return counted


def _tabs(request: HttpRequest) -> list[dict[str, Any]]:
    user = who(request)
    pages = (
        ("approvals", "To decide", pending_for(request)),
        ("inbox-history", "History", 0),
        ("approver-statistics", "Statistics", 0),
        ("inbox-grants", "Grants", 0),
        ("inbox-glass", "Break-glass", visible_glass(user).filter(verdict="").exclude(person=user.pk).count()),
    )
    return [
        {"name": name, "title": title, "url": (url := reverse(name)), "count": count, "is_here": url == request.path}
        for name, title, count in pages
    ]
