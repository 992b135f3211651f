"""The doorway: programs come in by a shorter way than people.

No sessions, cookies, forms or static files, and the view of a path without ids is looked up once, not at each request.
"""

from collections.abc import Callable, Iterable
from typing import Any, cast

from django.core.handlers.exception import convert_exception_to_response
from django.core.handlers.wsgi import WSGIRequest
from django.db import DEFAULT_DB_ALIAS, connections
from django.http import HttpRequest, HttpResponse, HttpResponseBase
from django.middleware.security import SecurityMiddleware
from django.urls import resolve

PATHS = ("/tools/call", "/tools", "/call", "/health", "/contract/v1/execute", "/mcp", "/rpc")
PREFIXES = ("/v1/sessions", "/v1/tools/")  # paths with ids in them
MAX_HOSTS = 100

View = Callable[[HttpRequest], HttpResponseBase]


class Doorway:
    """A WSGI application for the doors' paths; what stays of the middleware is what protects programs too."""

    def __init__(self, paths: Iterable[str] = PATHS) -> None:
        self._views: dict[str, View] = {path: _protected(resolve(path).func) for path in paths}
        self._resolved = _protected(_resolved)

    def __contains__(self, path: str) -> bool:
        return path in self._views or path.startswith(PREFIXES)

    def __call__(self, environ: dict[str, Any], start_response: Callable[..., object]) -> Iterable[bytes]:
        _drop_broken_connection()
        view = self._views.get(environ["PATH_INFO"], self._resolved)
        response = view(WSGIRequest(environ))
        start_response(f"{response.status_code} {response.reason_phrase}", list(response.items()))
        if isinstance(response, HttpResponse):
            return [response.content]
        return cast(Iterable[bytes], response)  # a stream: the server takes piece by piece and closes it


def _resolved(request: HttpRequest) -> HttpResponseBase:
    """The view of a path that names something; the path as it was sent, with whatever an id holds."""
    found = resolve(request.path_info)
    answer: HttpResponseBase = found.func(request, *found.args, **found.kwargs)
    return answer


def _drop_broken_connection() -> None:
    """As Django does around a request, but only where there was trouble: our connections never grow old."""
    database = connections[DEFAULT_DB_ALIAS]
    if database.errors_occurred:
        database.close_if_unusable_or_obsolete()


def _protected(view: View) -> View:
    known_hosts: set[str] = set()

    def answer(request: HttpRequest) -> HttpResponseBase:
        """Refuses hosts that are not ours, so that a web page cannot make a browser speak to us in its own name."""
        host = request.META.get("HTTP_HOST", "")
        if host not in known_hosts:
            request.get_host()
            if len(known_hosts) < MAX_HOSTS:
                known_hosts.add(host)
        return view(request)

    secured: Any = SecurityMiddleware(convert_exception_to_response(answer))
    return cast(View, convert_exception_to_response(secured))
