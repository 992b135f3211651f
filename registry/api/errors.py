"""Every failure that a program sees outside the doors as one JSON shape: {code, message, details?, errors?}."""

import logging
from collections.abc import Iterable, Mapping
from typing import Any

from django.core.exceptions import DisallowedHost, PermissionDenied
from django.db import InterfaceError, OperationalError
from django.http import Http404, HttpRequest, HttpResponse, JsonResponse
from django.http.request import UnreadablePostError
from django.views import defaults
from rest_framework import exceptions, status
from rest_framework.renderers import JSONRenderer
from rest_framework.response import Response

from audit.api.lists import BadQuestion

logger = logging.getLogger(__name__)

_CODES = {
    400: "bad_request",
    401: "not_authenticated",
    403: "permission_denied",
    404: "not_found",
    405: "method_not_allowed",
    406: "not_acceptable",
    415: "unsupported_media_type",
    429: "rate_limited",
}
FOREIGN_HOST = "This host name is not served here; the setting ALLOWED_HOSTS names those that are."
MAX_ERRORS = 50  # that one answer lists
MAX_TOLD = 1_000  # characters of a path or a reason, for some repeat what was sent
_NOT_FOUND = "There is nothing here, or it is not yours to see."
_NOT_AUTHENTICATED = "Send an agent's key as 'Authorization: Bearer …' or as 'OXP-API-Key', or log in to the portal."
_AWAY = "The database does not answer at this moment; ask again."
_INTERNAL = "Something went wrong here; the log of the server says what."


class Refused(exceptions.APIException):
    """A request that cannot be done as asked: a code for programs, a message for people, and what to look at."""

    def __init__(
        self,
        status_code: int,
        code: str,
        message: str,
        *,
        details: Mapping[str, Any] | None = None,
        errors: Iterable[Mapping[str, Any]] | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(message, code)
        self.status_code = status_code
        self.headers = dict(headers or {})
        self.body: dict[str, Any] = {"code": code, "message": message}
        if details is not None:
            self.body["details"] = dict(details)
        if errors is not None:
            self.body["errors"] = [dict(error) for error in errors]


class Unread(Refused):
    """A body that did not come; whoever is still there to hear of it was not given a seat."""

    def __init__(self) -> None:
        message = "The body could not be read; send it again."
        super().__init__(status.HTTP_503_SERVICE_UNAVAILABLE, "unavailable", message, headers={"Retry-After": "1"})


class TooLarge(Refused):
    """A body of more bytes than are read."""

    def __init__(self, most: int) -> None:
        super().__init__(413, "too_large", f"The body is larger than {most:,} bytes.")


class Conflict(Refused):
    """The thing is not in the state for this."""

    def __init__(self, message: str, *, details: Mapping[str, Any] | None = None) -> None:
        super().__init__(status.HTTP_409_CONFLICT, "conflict", message, details=details)


class BadParameter(Refused):
    """A query parameter that is not known, or whose value cannot be read."""

    def __init__(self, parameter: str, reason: str) -> None:
        errors = [{"path": parameter, "reason": reason}]
        super().__init__(status.HTTP_400_BAD_REQUEST, "bad_parameter", f"{parameter}: {reason}", errors=errors)


def answer(error: Exception, context: Mapping[str, Any]) -> Response:
    """DRF's exception handler: no HTML, no traceback, and no error that is not JSON."""
    if (request := context.get("request")) is not None:  # where answers are YAML, errors are not
        request.accepted_renderer, request.accepted_media_type = JSONRenderer(), JSONRenderer.media_type
    if isinstance(error, UnreadablePostError):
        error = Unread()
    if isinstance(error, Refused):
        return Response(error.body, status=error.status_code, headers=error.headers)
    if isinstance(error, Http404 | exceptions.NotFound):
        return _response(404, _NOT_FOUND)
    if isinstance(error, PermissionDenied):
        return _response(403, str(error) or "You may not do this.")
    if isinstance(error, exceptions.ValidationError):
        return _invalid(error, context)
    if isinstance(error, exceptions.NotAuthenticated):
        error.detail = exceptions.ErrorDetail(_NOT_AUTHENTICATED)
    if isinstance(error, exceptions.APIException):
        response = _response(error.status_code, str(error.detail))
        if header := getattr(error, "auth_header", None):
            response["WWW-Authenticate"] = header
        if (wait := getattr(error, "wait", None)) is not None:
            response["Retry-After"] = str(int(wait))
        return response
    if isinstance(error, OperationalError | InterfaceError):
        logger.error("the database did not answer: %s", error)
        return Response({"code": "unavailable", "message": _AWAY}, status=503, headers={"Retry-After": "2"})
    logger.error("a request to /api/ failed", exc_info=error)
    return Response({"code": "internal", "message": _INTERNAL}, status=500)


def refused(refusal: Refused) -> JsonResponse:
    """The no to a request that did not come as far as its view."""
    return JsonResponse(refusal.body, status=refusal.status_code, headers=refusal.headers)


def page_not_found(request: HttpRequest, exception: Exception) -> HttpResponse:
    """handler404: a page for browsers, JSON for programs."""
    is_bare = request.path_info.startswith("/api/") and not request.path_info.endswith("/")
    message = "There is nothing here: addresses under /api/ end with a slash." if is_bare else _NOT_FOUND
    return _json(request, 404, "not_found", message) or defaults.page_not_found(request, exception)


def bad_request(request: HttpRequest, exception: Exception) -> HttpResponse:
    """handler400: a page for browsers, JSON for programs."""
    message = "The request could not be read."
    if isinstance(exception, DisallowedHost):
        message = FOREIGN_HOST
    return _json(request, 400, "bad_request", message) or defaults.bad_request(request, exception)


def unread(request: HttpRequest, refusal: Refused) -> HttpResponse:
    """Why a body was not read: a page for browsers, JSON for programs."""
    told = _json(request, refusal.status_code, "unavailable", str(refusal))
    response = told or defaults.bad_request(request, refusal)
    response.status_code = refusal.status_code
    for name, value in refusal.headers.items():
        response[name] = value
    return response


def server_error(request: HttpRequest) -> HttpResponse:
    """handler500: a page for browsers, JSON for programs."""
    return _json(request, 500, "internal", _INTERNAL) or defaults.server_error(request)


def _json(request: HttpRequest, status_code: int, code: str, message: str) -> JsonResponse | None:
    is_page = not request.path_info.startswith("/api/") and "text/html" in request.headers.get("Accept", "")
    if is_page:
        return None
    return JsonResponse({"code": code, "message": message}, status=status_code)


def _response(status_code: int, message: str) -> Response:
    return Response({"code": _CODES.get(status_code, "error"), "message": message}, status=status_code)


def _invalid(error: exceptions.ValidationError, context: Mapping[str, Any]) -> Response:
    """Wrong query parameters are 400; a body that is JSON but not what was asked for is 422."""
    request = context.get("request")
    is_reading = request is not None and request.method in {"GET", "HEAD", "OPTIONS"}
    is_question = is_reading or isinstance(error, BadQuestion)
    errors = list(_flat(error.detail, ""))
    if (rest := len(errors) - MAX_ERRORS) > 0:
        errors[MAX_ERRORS:] = [{"path": "", "reason": f"There are {rest} more errors."}]
    message = "; ".join(f"{entry['path']}: {entry['reason']}" if entry["path"] else entry["reason"] for entry in errors)
    code = "bad_parameter" if is_question else "invalid"
    return Response({"code": code, "message": message, "errors": errors}, status=400 if is_question else 422)


def _flat(detail: Any, path: str) -> Iterable[dict[str, str]]:
    if isinstance(detail, Mapping):
        for name, inner in detail.items():
            yield from _flat(inner, path if name == "non_field_errors" else f"{path}.{name}".lstrip("."))
    elif isinstance(detail, list | tuple):
        for position, inner in enumerate(detail):
            yield from _flat(inner, f"{path}[{position}]" if isinstance(inner, Mapping | list) else path)
    else:
        yield {"path": path[:MAX_TOLD], "reason": str(detail)[:MAX_TOLD]}
