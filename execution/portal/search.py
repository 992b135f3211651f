"""One box for everything that happened: calls and events, readable filters, kept questions, and what holds of it."""

from typing import Any
from urllib.parse import urlencode

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import reverse
from django.utils import timezone

from audit import spotcheck
from audit.admin.event import OUTCOMES, page_of
from audit.exports import detail_of
from audit.models import Event
from execution import savedfilters
from execution.models import Call, SavedFilter, State
from execution.portal.finding import Found, filters_of, find_calls, find_events
from execution.portal.frame import for_people, page
from execution.portal.query import MAX_QUERY, ONLY_EVENTS, Query, QueryError
from execution.savedfilters import SavedFilterError
from execution.sentences import is_told, sentence
from execution.tones import DOORS, LABELS
from execution.viewer import Viewer
from registry.actors import who

PLACES = tuple(SavedFilter.Place.choices)
FIELDS = ("agent", "tool", "since", "until", "trace")  # what the form asks for, beside states


@for_people("GET", "HEAD")
def look(request: HttpRequest) -> HttpResponse:
    """The form adds to the box, and the address then holds the box alone, so that it can be kept and sent."""
    place = request.GET.get("in", "calls")
    if place not in dict(PLACES):
        place = "calls"
    text, error, query = request.GET.get("q", ""), "", Query()
    found = Found(rows=[])
    try:
        query = Query.parse(text)
        if "filter" in request.GET:
            return redirect(address(place, _with_form(query, request)))
        finder = find_calls if place == "calls" else find_events
        found = finder(query, Viewer(user=who(request)), timezone.now(), request.GET.get("older", ""))
    except QueryError as bad:
        error = str(bad)
    check = _checked(place, found)
    context: dict[str, Any] = {
        "place": place,
        "places": [
            {"key": key, "title": title, "url": address(key, query if query.terms else None), "is_here": key == place}
            for key, title in PLACES
        ],
        "text": text,
        "error": error,
        "most": MAX_QUERY,
        "chips": [
            {"told": term.told, "url": address(place, query.without(index))} for index, term in enumerate(query.terms)
        ],
        "fields": {name: "".join(query.values(name)) for name in FIELDS},
        "states": [(key, title, key in query.values("state")) for key, title in State.choices],
        "rows": [_row(place, row, check) for row in found.rows],
        "check": check,
        "found": found,
        "older_url": address(place, query, found.older) if found.older else "",
        "saved": savedfilters.of(who(request), place),
        "pack_url": "" if error else _pack_url(query, place),
    }
    return page(request, "portal/search.html", "Search", status=422 if error else 200, **context)


@for_people("POST")
def keep(request: HttpRequest) -> HttpResponse:
    """Keep the question under a name."""
    place, text = request.POST.get("in", ""), request.POST.get("q", "")
    if place not in dict(PLACES):
        return redirect("portal-search")
    try:
        query = Query.parse(text)
        saved = savedfilters.keep(who(request), place, request.POST.get("name", ""), str(query))
        messages.success(request, f"Kept as “{saved.name}”.")
        return redirect(address(place, query))
    except (SavedFilterError, QueryError) as error:
        messages.error(request, str(error))
    return redirect(f"{reverse('portal-search')}?{urlencode({'in': place, 'q': text[:MAX_QUERY]})}")


@for_people("POST")
def forget(request: HttpRequest, id: int) -> HttpResponse:
    """Forget one of one's own."""
    if id < 2**63 and savedfilters.forget(who(request), id):
        messages.success(request, "Forgotten.")
    place = request.POST.get("in", "calls")
    return redirect(address(place if place in dict(PLACES) else "calls", None))


def address(place: str, query: Query | None, older: str = "") -> str:
    """Where this question is answered; what only events have is left out where calls are searched."""
    terms = query.terms if query else ()
    kept = Query(tuple(term for term in terms if place == "events" or term.name not in ONLY_EVENTS))
    asked = {"in": place, "q": str(kept), "older": older}
    return f"{reverse('portal-search')}?{urlencode({name: value for name, value in asked.items() if value})}"


def _with_form(query: Query, request: HttpRequest) -> Query:
    """What the fields say replaces what the box said of the same."""
    for name in FIELDS:
        query = query.having(name, request.GET.get(name, "").strip().replace('"', " "))
    query = query.having("state", *request.GET.getlist("state"))
    return Query.parse(str(query))  # so that what is too long is told now


def _pack_url(query: Query, place: str) -> str:
    try:
        filters = filters_of(query, place, timezone.now())
    except QueryError:
        return ""
    return f"{reverse('new-pack')}?{urlencode({'scope': '1', **filters})}"


def _checked(place: str, found: Found) -> spotcheck.SpotCheck:
    if place == "calls":
        return spotcheck.of_subjects("call", [str(call.pk) for call in found.rows])
    return spotcheck.of_events(found.rows)


def _row(place: str, row: Any, check: spotcheck.SpotCheck) -> dict[str, Any]:
    return _call(row, check) if place == "calls" else _event(row, check)


def _call(call: Call, check: spotcheck.SpotCheck) -> dict[str, Any]:
    return {
        "call": call,
        "why": _why(call.error),
        "label": LABELS.get(call.state, ""),
        "door": DOORS.get(call.door, call.door),
        "standing": check.standings[str(call.pk)],
    }


def _why(error: str) -> str:
    told = detail_of(error) if error else {}
    return str(told.get("message") or told.get("code") or "") if isinstance(told, dict) else ""


def _event(event: Event, check: spotcheck.SpotCheck) -> dict[str, Any]:
    detail = detail_of(event.detail)
    return {
        "event": event,
        "sentence": sentence(event.event, event.actor, detail if isinstance(detail, dict) else {})
        if is_told(event.event)
        else "",
        "label": OUTCOMES.get(event.outcome, ""),
        "url": page_of(event.subject_kind, event.subject_id),
        "standing": check.standings[event.pk],
    }
