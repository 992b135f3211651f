"""What surrounds every page: which slash it ends with, what it may load and run, and how its body is read."""

from collections.abc import Callable
from io import BytesIO
from typing import Any

from django.conf import settings
from django.core.exceptions import BadRequest
from django.db import DataError
from django.http import HttpRequest, HttpResponse
from django.middleware.common import CommonMiddleware

from execution.protocols.base import JSON
from execution.protocols.bodies import Crowded, unmeasured
from execution.protocols.unseen import door_of
from registry.api import errors
from registry.api.parsing import MAX_BYTES

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


class NumbersOfTheAdmin:
    """It looks for rows by whatever was sent as a number; one that no database can hold is its sender's mistake."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self._get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        return self._get_response(request)

    def process_exception(self, request: HttpRequest, exception: Exception) -> None:
        is_wrong = isinstance(exception, OverflowError | DataError) or "expected a number but got" in str(exception)
        if is_wrong and request.path.startswith("/admin/"):
            raise BadRequest("The request names a row by a number that cannot be one") from exception


class ChunkedBodies:
    """A body without a length, which Django would take for an empty one, is read and given the length it has."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self._get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        return self._get_response(request)

    def process_view(self, request: HttpRequest, view: Any, *_: Any) -> HttpResponse | None:
        is_reading = request.method in ("GET", "HEAD", "OPTIONS")
        if is_reading or not _is_chunked(request) or door_of(view, request) is not None:  # doors read for themselves
            return None
        if request.content_type != JSON:  # a form or YAML that breaks off is still one: half of it would take effect
            message = "Send Content-Length; only JSON may come without."
            return errors.refused(errors.Refused(411, "length_required", message))
        most = MAX_BYTES if request.path_info.startswith("/api/") else settings.DATA_UPLOAD_MAX_MEMORY_SIZE
        try:
            body = unmeasured(request.META["wsgi.input"], most)
        except (OSError, Crowded):
            return errors.refused(errors.Unread())
        if len(body) > most:
            return errors.refused(errors.TooLarge(most))
        if not body:  # the server hands over the same where the first chunk is broken
            return errors.refused(errors.Refused(400, "malformed", "The body has no chunks that can be read."))
        request.META["CONTENT_LENGTH"] = str(len(body))
        request._stream = BytesIO(body)
        return None


def _is_chunked(request: HttpRequest) -> bool:
    """Whether the body has no length, and comes from a server that says where it ends."""
    meta = request.META
    is_unmeasured = "HTTP_TRANSFER_ENCODING" in meta and not meta.get("CONTENT_LENGTH")
    return is_unmeasured and bool(meta.get("wsgi.input_terminated"))


def _is_by_others(request: HttpRequest, response: HttpResponse) -> bool:
    """Whether the admin or the reference of the API drew the page; home and errors under /admin/ are our own."""
    match = request.resolver_match
    is_theirs = match is not None and ("admin" in match.namespaces or match.view_name == "api-docs")
    return is_theirs and response.status_code < 400
