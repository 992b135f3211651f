"""Bad requests that no view saw, such as those for a foreign host: a door refuses them in its own form too."""

from django.core.exceptions import DisallowedHost
from django.http import HttpRequest, HttpResponseBase
from django.urls import Resolver404, resolve

from execution.protocols.base import DoorView
from execution.protocols.bodies import Crowded
from execution.protocols.dialect import Refusal
from execution.protocols.tools import View, meant
from registry.api import errors


def bad_request(request: HttpRequest, exception: Exception) -> HttpResponseBase:
    """handler400, for doors and for all else."""
    if isinstance(exception, Crowded):
        return errors.unread(request, exception)
    door = _door(request) if isinstance(exception, DisallowedHost) else None
    if door is None:
        return errors.bad_request(request, exception)
    return door.refused(Refusal("bad_request", errors.FOREIGN_HOST))


def _door(request: HttpRequest) -> type[DoorView] | None:
    try:
        return door_of(resolve(request.path_info).func, request)
    except Resolver404:
        return None


def door_of(view: View, request: HttpRequest) -> type[DoorView] | None:
    """The door that this view is, for this request; None if it is something else."""
    found = getattr(meant(view, request), "view_class", None)
    return found if isinstance(found, type) and issubclass(found, DoorView) else None
