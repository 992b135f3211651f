"""DoorView and AgentView: what every door does before and after its own translation."""

import logging
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, NoReturn, cast

import orjson
from django.core.exceptions import SuspiciousOperation
from django.db import InterfaceError, OperationalError
from django.http import HttpRequest, HttpResponse, HttpResponseBase, StreamingHttpResponse
from django.views import View

from audit import trail
from execution.pipeline.admit import admit
from execution.protocols.bodies import Crowded, unmeasured
from execution.protocols.dialect import Answer, Dialect, Manner, Refusal, seconds
from policy.authentication import CHALLENGE, NotAuthenticated, authenticate
from policy.caller import Caller
from policy.scopes import CALL
from registry import revision, strictjson

MAX_BODY = 1_000_000
JSON = "application/json"
EVENTS = "text/event-stream"
METHODS = ("get", "head", "post", "put", "patch", "delete")
_KEPT = "placet_body"
RETRY_UNAVAILABLE = 2_000  # milliseconds

log = logging.getLogger(__name__)
Handler = Callable[..., Answer]


class DoorView(View):
    """Answers in the door's own JSON whatever happens."""

    dialect: Manner
    may_guess = False  # whether what it does in good order says by which revision, in one statement

    @classmethod
    def as_view(cls, **initkwargs: Any) -> Callable[..., HttpResponseBase]:
        view = super().as_view(**initkwargs)
        view.csrf_exempt = True  # type: ignore[attr-defined]  # a caller proves itself in a header, never by cookie
        return view

    def dispatch(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
        """One request, judged by one state of the registry, and always answered."""
        try:
            if self.may_guess and (answer := self._by_guess(request, *args, **kwargs)) is not None:
                return _sent(answer)
            with revision.pinned():
                answer = self._handler(request)(request, *args, **kwargs)
            return _sent(answer)
        except Refusal as refusal:
            return _sent(self.dialect.from_refusal(refusal))
        except Exception as error:
            return _sent(self.dialect.from_refusal(_mishap(error)))

    @classmethod
    def refused(cls, refusal: Refusal) -> HttpResponseBase:
        """The door's no to a request that did not come as far as a view."""
        return _sent(cls.dialect.from_refusal(refusal))

    def _by_guess(self, request: HttpRequest, *args: Any, **kwargs: Any) -> Answer | None:
        """The answer, if the registry is as it was a moment ago and all is in order; else nothing was done or told."""
        try:
            with revision.guessed() as is_guess:
                return self._handler(request)(request, *args, **kwargs) if is_guess else None
        except revision.Unsure:
            return None

    def _handler(self, request: HttpRequest) -> Handler:
        method = (request.method or "").lower()
        if method in METHODS and hasattr(self, method):
            return cast(Handler, getattr(self, method))
        allowed = ", ".join(name.upper() for name in METHODS if hasattr(self, name))
        raise Refusal("method_not_allowed", f"This path answers {allowed} only", status=405, headers={"Allow": allowed})


class AgentView(DoorView):
    """Knows the caller and reads strictly; a refusal of a known caller leaves one event and nothing else."""

    scope = CALL  # what a token that is limited to scopes must hold

    def _handler(self, request: HttpRequest) -> Handler:
        handler = super()._handler(request)
        proof = _credentials(request)
        try:
            caller = authenticate(proof, resource=self.resource())
        except NotAuthenticated as error:
            revision.certain()
            raise self.unproven(error, "invalid_token" if any(proof.values()) else "") from error
        return partial(self._recorded, handler, caller)

    def unproven(self, error: NotAuthenticated, word: str) -> Refusal:
        """What is said to those who did not prove who they are."""
        challenge = {"WWW-Authenticate": self.challenge(word)}
        return Refusal("unauthenticated", str(error), status=401, headers=challenge)

    def resource(self) -> str:
        """The address that tokens for this door alone are made out to, if it has one."""
        return ""

    def challenge(self, error: str) -> str:
        """WWW-Authenticate; `error` is one of RFC 6750's words."""
        return CHALLENGE

    def check_scope(self, caller: Caller, scope: str) -> None:
        if not caller.may(scope):
            challenge = {"WWW-Authenticate": self.challenge("insufficient_scope")}
            raise Refusal("insufficient_scope", f"The token's scope lacks {scope}", status=403, headers=challenge)

    def _recorded(self, handler: Handler, caller: Caller, request: HttpRequest, **kwargs: Any) -> Answer:
        try:
            if self.scope:
                self.check_scope(caller, self.scope)
            return handler(request, caller, **kwargs)
        except Refusal as refusal:
            revision.certain()
            trail.record(
                "agent",
                caller.name,
                "request.refused",
                actor=f"agent:{caller.name}",
                outcome="refused",
                detail={"door": self.dialect.name, "code": refusal.code},
            )
            raise

    def read_json(self, request: HttpRequest) -> Any:
        """The body as a JSON value; everything that is not exactly that is refused."""
        if request.META.get("CONTENT_TYPE") != JSON and not _is_json(request):
            raise Refusal("unsupported_media_type", f"The body must be sent as Content-Type: {JSON}", status=415)
        body = body_of(request)
        if not body:
            raise Refusal("malformed", "The body is empty; a JSON document is needed")
        try:
            return strictjson.loads(body, max_bytes=MAX_BODY)
        except strictjson.StrictJSONError as error:
            raise Refusal(error.code, error.message, status=error.status) from error


class CallView(AgentView):
    """One call: translate, admit, translate back."""

    dialect: Dialect
    may_guess = True

    def post(self, request: HttpRequest, caller: Caller) -> Answer:
        body = self.read_json(request)
        self.dialect = dialect = self.spoken(body)
        return dialect.from_outcome(admit(dialect.to_request(body, caller)))

    def spoken(self, body: Any) -> Dialect:
        """The dialect of this body, where a path is shared by more than one."""
        return self.dialect


def _sent(answer: Answer) -> HttpResponseBase:
    if answer.events is not None:
        return StreamingHttpResponse(answer.events, content_type=EVENTS, headers=answer.headers)
    body = answer.body if type(answer.body) is bytes else orjson.dumps(answer.body, default=_plain)
    response = HttpResponse(body, status=answer.status, content_type=JSON, headers={"Content-Length": str(len(body))})
    for name, value in answer.headers.items():
        response[name] = value
    return response


def _plain(value: Any) -> Any:
    """For orjson, which knows dicts but no other mappings."""
    if isinstance(value, Mapping):
        return dict(value)
    raise TypeError(f"{type(value).__name__} is not a JSON value")


def _mishap(error: Exception) -> Refusal:
    """What a caller is told about trouble that no door knows of: to come again, or that we have a bug."""
    if isinstance(error, SuspiciousOperation):
        return Refusal("bad_request", "The request cannot be read: it has too many or wrong parameters")
    if isinstance(error, OperationalError | InterfaceError):
        log.error("the database did not answer: %s", error)
        message = "The tool server is temporarily unavailable"
        return Refusal("unavailable", message, status=503, headers={"Retry-After": seconds(RETRY_UNAVAILABLE)})
    log.error("a request ended in a bug", exc_info=error)
    return Refusal("internal", "The tool server made a mistake; it has been logged", status=500)


def _credentials(request: HttpRequest) -> dict[str, str]:
    """The headers that can prove a caller; Django would first sort through all that came."""
    meta = request.META
    return {"Authorization": meta.get("HTTP_AUTHORIZATION", ""), "OXP-API-Key": meta.get("HTTP_OXP_API_KEY", "")}


def _is_json(request: HttpRequest) -> bool:
    charset = (request.content_params or {}).get("charset", "utf-8").lower()
    return request.content_type == JSON and charset in ("utf-8", "utf8")


def body_of(request: HttpRequest) -> bytes:
    """The bytes that were sent, read once however often they are asked for; so is why they cannot be read."""
    kept: bytes | Refusal | None = getattr(request, _KEPT, None)
    if kept is None:
        try:
            kept = _read(request)
        except Refusal as refusal:
            kept = refusal
        setattr(request, _KEPT, kept)
    if isinstance(kept, Refusal):
        raise kept
    return kept


def _read(request: HttpRequest) -> bytes:
    """Never more than a little beyond what is allowed."""
    length = request.META.get("CONTENT_LENGTH") or ""
    if length:
        if not (length.isascii() and length.isdigit()):
            raise Refusal("malformed", "Content-Length must be a whole number")
        if len(length) > 9 or int(length) > MAX_BODY:
            _too_large()
    try:
        if not length and request.META.get("HTTP_TRANSFER_ENCODING") and request.META.get("wsgi.input_terminated"):
            return _chunked(request)
        return _whole(request, int(length or 0))
    except Crowded as error:
        message = "So many bodies are on their way that this one was not read; send it again"
        raise Refusal("crowded", message, status=503, headers={"Retry-After": "1"}) from error
    except OSError as error:
        raise Refusal("malformed", "The body could not be read to its end") from error


def _whole(request: HttpRequest, length: int) -> bytes:
    """As many bytes as were announced; fewer only if no more come."""
    stream = request.META["wsgi.input"]
    body: bytes = stream.read(length) if length else b""
    while len(body) < length and (more := stream.read(length - len(body))):
        body += more
    return body


def _chunked(request: HttpRequest) -> bytes:
    """A body without a length, which Django would take for an empty one."""
    body = unmeasured(request.META["wsgi.input"], MAX_BODY)
    if len(body) > MAX_BODY:
        _too_large()
    return body


def _too_large() -> NoReturn:
    raise Refusal("too_large", f"The body is larger than {MAX_BODY} bytes", status=413)
