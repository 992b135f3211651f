"""What surrounds every page: which slash it ends with, and what it may load and run."""

from collections.abc import Callable

from django.http import HttpRequest, HttpResponse
from django.middleware.common import CommonMiddleware

# Only what we serve ourselves: nothing that stands in a page runs or styles it, and no text is compiled.
STRICT = {
    "default-src": "'self'",
    "script-src": "'self'",
    "style-src": "'self'",
    "img-src": "'self' data:",
    "object-src": "'none'",
    "base-uri": "'none'",
    "form-action": "'self'",
    "frame-ancestors": "'none'",
}
# Pages that others wrote. The admin's scripts (Alpine) compile expressions, and it writes its colours into each page;
# the reference of the API sets styles on elements.
WIDER = STRICT | {"script-src": "'self' 'unsafe-eval'", "style-src": "'self' 'unsafe-inline'"}


class SlashForReaders(CommonMiddleware):
    """Adds a missing slash for those who read; a POST would arrive as a GET, so it is told instead."""

    def should_redirect_with_slash(self, request: HttpRequest) -> bool:
        return request.method in ("GET", "HEAD") and bool(super().should_redirect_with_slash(request))


class ContentPolicy:
    """Markup that slipped into a page finds nothing to run it."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self._get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        response = self._get_response(request)
        if response.get("Content-Type", "").startswith("text/html"):
            rules = WIDER if _is_by_others(request, response) else STRICT
            response["Content-Security-Policy"] = "; ".join(f"{name} {sources}" for name, sources in rules.items())
        return response


def _is_by_others(request: HttpRequest, response: HttpResponse) -> bool:
    """Whether the admin or the reference of the API drew the page; home and errors under /admin/ are our own."""
    match = request.resolver_match
    is_theirs = match is not None and ("admin" in match.namespaces or match.view_name == "api-docs")
    return is_theirs and response.status_code < 400
