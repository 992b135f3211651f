"""ToolsView: what a caller may call, as its door describes it."""

from collections.abc import Callable
from contextlib import suppress
from typing import Any

from django.core.exceptions import SuspiciousOperation
from django.http import HttpRequest, HttpResponseBase

from execution.protocols.base import AgentView
from execution.protocols.dialect import Answer
from execution.protocols.listing import Listings
from execution.protocols.shape import invalid, mapping
from policy.caller import Caller
from policy.scopes import READ

CACHING = {"Cache-Control": "private, no-cache", "Vary": "Authorization, OXP-API-Key, Accept-Profile"}
PROFILES = ("", "oxp", "otc")
View = Callable[..., HttpResponseBase]
Choice = Callable[[HttpRequest], View]


class ToolsView(AgentView):
    """One door's list; a reader who has it already is told so."""

    scope = READ
    listings: Listings
    check_version: Callable[[dict[str, Any]], None]

    def get(self, request: HttpRequest, caller: Caller) -> Answer:
        if request.GET.get("profile", "").lower() not in PROFILES:
            raise invalid(f"profile must be one of {', '.join(PROFILES[1:])}")
        if _has_body(request):
            self.check_version(mapping(self.read_json(request), "The body"))
        listing = self.listings.of(caller)
        headers = {**CACHING, "ETag": listing.etag}
        if _names(request.headers.get("If-None-Match", ""), listing.etag):
            return Answer(body=b"", status=304, headers=headers)
        return Answer(body=listing.body, headers=headers)


def by_profile(*, oxp: View, otc: View) -> View:
    """Two doors list their tools at one path; a client of the older one says so."""

    def chosen(request: HttpRequest) -> View:
        return otc if _wants_otc(request) else oxp

    def view(request: HttpRequest) -> HttpResponseBase:
        return chosen(request)(request)

    view.csrf_exempt = True  # type: ignore[attr-defined]
    view.chosen = chosen  # type: ignore[attr-defined]
    return view


def meant(view: View, request: HttpRequest) -> View:
    """The view that answers this request: where doors share a path, that of the profile it asks for."""
    choice: Choice | None = getattr(view, "chosen", None)
    return choice(request) if choice else view


def _wants_otc(request: HttpRequest) -> bool:
    with suppress(SuspiciousOperation):  # a query that cannot be read names no profile; the door says what is wrong
        if (profile := request.GET.get("profile")) is not None:
            return profile.lower() == "otc"
    offered = request.headers.get("Accept-Profile", "").lower().split(",")
    return any(each.partition(";")[0].strip(' <>"') == "otc" for each in offered)


def _has_body(request: HttpRequest) -> bool:
    return request.META.get("CONTENT_LENGTH") not in (None, "", "0") or "HTTP_TRANSFER_ENCODING" in request.META


def _names(if_none_match: str, etag: str) -> bool:
    """Weak comparison: proxies that compress mark our tag as weak."""
    return any(each.strip().removeprefix("W/") in (etag, "*") for each in if_none_match.split(","))
