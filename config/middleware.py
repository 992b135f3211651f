"""What surrounds every page: which slash it ends with, and what it may load and run."""

from collections.abc import Callable

from django.http import HttpRequest, HttpResponse
from django.middleware.common import CommonMiddleware

# Only what we serve ourselves, and no script that stands in a page. The portal's own scripts (Alpine) compile
# expressions, which is what 'unsafe-eval' allows; its styles are set on elements.
CONTENT_POLICY = "; ".join(
    (
        "default-src 'self'",
        "script-src 'self' 'unsafe-eval'",
        "style-src 'self' 'unsafe-inline'",
        "img-src 'self' data:",
        "object-src 'none'",
        "base-uri 'none'",
        "form-action 'self'",
        "frame-ancestors 'none'",
    )
)


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
            response["Content-Security-Policy"] = CONTENT_POLICY
        return response
