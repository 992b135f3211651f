"""The doorway: programs come in by a shorter way than people, without sessions, cookies, forms and static files."""

from collections.abc import Callable

from django.core.handlers.exception import convert_exception_to_response
from django.core.handlers.wsgi import WSGIHandler
from django.http import HttpRequest, HttpResponseBase
from django.middleware.security import SecurityMiddleware

PATHS = frozenset({"/tools/call", "/tools", "/call", "/health"})


class Doorway(WSGIHandler):
    """Answers the doors' paths; what stays of the middleware is what protects programs too."""

    def load_middleware(self, is_async: bool = False) -> None:
        self._view_middleware: list[Callable[..., HttpResponseBase]] = []
        self._template_response_middleware: list[Callable[..., HttpResponseBase]] = []
        self._exception_middleware: list[Callable[..., HttpResponseBase]] = []
        inner = convert_exception_to_response(self._get_response)
        for layer in (_known_by_this_name, SecurityMiddleware):
            inner = convert_exception_to_response(layer(inner))
        self._middleware_chain = inner


def _known_by_this_name(inner: Callable[[HttpRequest], HttpResponseBase]) -> Callable[[HttpRequest], HttpResponseBase]:
    """Refuses hosts that are not ours, so that a web page cannot make a browser speak to us under a name of its own."""

    def answer(request: HttpRequest) -> HttpResponseBase:
        request.get_host()
        return inner(request)

    return answer
