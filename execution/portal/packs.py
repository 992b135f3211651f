"""Packs on pages: ask for one, watch it being made, take it along."""

from typing import Any
from uuid import UUID

from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils import timezone
from django.views.decorators.cache import never_cache

from execution import packfiles, packs
from execution.models import Pack
from execution.portal.frame import for_people, page
from execution.portal.listed import filters_of_list, words_of
from execution.scope import FilterError, Scope
from execution.viewer import Viewer
from registry.actors import who

RECENT = 50


@for_people("GET", "HEAD")
def of_call(request: HttpRequest, id: UUID) -> Any:
    """The evidence of one call, at once."""
    viewer = Viewer(user=who(request))
    if not viewer.calls().filter(pk=id).exists():
        raise Http404
    return packfiles.of_call(id, viewer)


@for_people("GET", "HEAD")
def overview(request: HttpRequest) -> HttpResponse:
    """The packs of the last day that this person asked for."""
    mine = Pack.objects.filter(requested_by=who(request))[:RECENT]
    return page(request, "portal/packs.html", "Evidence packs", rows=[_shown(pack) for pack in mine])


@for_people("GET", "HEAD", "POST")
def new(request: HttpRequest) -> HttpResponse:
    """Says what will be in the file before it is made; the filters are in the address of the list they came from."""
    viewer, error = Viewer(user=who(request)), ""
    filters = filters_of_list(request.GET)
    try:
        scope = Scope(filters=filters)
        events = scope.events(viewer)
    except FilterError as bad:
        context: dict[str, Any] = {"error": str(bad), "forms": (), "told": ()}
        return page(request, "portal/pack_new.html", "New evidence pack", status=422, **context)
    form = request.POST.get("form", Pack.Form.ZIP)
    if request.method == "POST" and form in Pack.Form.values:
        try:
            return redirect("subject-pack", packs.ask(scope, by=who(request), form=form).pk)
        except packs.PackError as refused:
            error = str(refused)
    context = {
        "error": error,
        "told": words_of(filters),
        "forms": Pack.Form.choices,
        "chosen": form,
        "some": list(events.order_by("-id")[:3]),
        "most": packs.MAX_EVENTS,
    }
    return page(request, "portal/pack_new.html", "New evidence pack", status=422 if error else 200, **context)


@for_people("GET", "HEAD")
def show(request: HttpRequest, id: UUID) -> HttpResponse:
    """How far it is, renewed by itself, and where to download it."""
    return page(request, "portal/pack.html", "Evidence pack", **_shown(_theirs(request, id)))


@never_cache
def story(request: HttpRequest, id: UUID) -> HttpResponse:
    """The part of the page that moves."""
    if not request.user.is_authenticated:
        return HttpResponse(status=204, headers={"HX-Refresh": "true"})  # the whole page then asks to log in
    return _story(request, id)


@for_people("GET", "HEAD")
def _story(request: HttpRequest, id: UUID) -> HttpResponse:
    return render(request, "portal/pack_story.html", _shown(_theirs(request, id)))


@for_people("GET", "HEAD")
def download(request: HttpRequest, id: UUID) -> Any:
    """The file; a page that says so if it is not there."""
    pack = _theirs(request, id)
    if pack.state != Pack.State.DONE:
        return redirect("subject-pack", id)
    answer = packfiles.download(pack)
    if answer is not None:
        return answer
    return page(request, "portal/pack.html", "Evidence pack", status=410, **_shown(pack), gone=packs.GONE)


def _theirs(request: HttpRequest, id: UUID) -> Pack:
    mine = Pack.objects.filter(requested_by=who(request)).select_related("requested_by", "agent")
    pack = mine.filter(pk=id).first()
    if pack is None:
        raise Http404
    return pack


def _shown(pack: Pack) -> dict[str, Any]:
    return {
        "pack": pack,
        "about": (f"call {pack.call_id}",) if pack.call_id else words_of(pack.filters),
        "is_lost": pack.lease_until is not None and pack.lease_until < timezone.now(),
    }
