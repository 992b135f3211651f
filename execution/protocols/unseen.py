"""Bad requests that no view saw, such as those for a foreign host: a door refuses them in its own form too."""

from django.core.exceptions import DisallowedHost
from django.http import HttpRequest, HttpResponseBase
from django.urls import Resolver404, resolve

from execution.protocols.base import DoorView
from execution.protocols.dialect import Refusal
from registry.api import errors


def bad_request(request: HttpRequest, exception: Exception) -> HttpResponseBase:
    """handler400, for doors and for all else."""
    door = _door(request.path_info)
    if door is None or not isinstance(exception, DisallowedHost):
        return errors.bad_request(request, exception)
    return door.refused(Refusal("bad_request", errors.FOREIGN_HOST))


def _door(path: str) -> type[DoorView] | None:
    try:
        view = getattr(resolve(path).func, "view_class", None)
    except Resolver404:
        return None
    return view if isinstance(view, type) and issubclass(view, DoorView) else None
