"""POST /v1/tool-callbacks/{request_id}: a tool that answers later sends its response, once."""

import hashlib
import hmac
import re
import time
from collections.abc import Callable
from typing import Any

from django.http import HttpRequest

from execution import callbacks, envelope
from execution.models import Callback
from execution.pipeline import answering
from execution.pipeline.answering import Reception
from execution.protocols import base
from execution.protocols.dialect import Answer, Dialect, Refusal
from execution.runtimes.webhook import is_under_way
from registry import strictjson

MAX_SKEW = 300  # seconds
_SIGNATURE = re.compile(r"sha256=([0-9a-fA-F]{64})")
_MOMENT = re.compile(r"[0-9]{1,12}", re.ASCII)
_STATUS = {Reception.DELIVERED: 202, Reception.REPEATED: 200, Reception.CONFLICT: 409, Reception.EXPIRED: 410}
_REFUSED = {
    Reception.CONFLICT: "Another answer was taken, or the call ended without one",
    Reception.EXPIRED: "The time for this answer is over",
}


def _refused(refusal: Refusal) -> Answer:
    body = {"error": {"code": refusal.code, "message": refusal.message}}
    return Answer(body=body, status=refusal.status, headers=refusal.headers)


def _no_calls(*_: Any) -> Any:
    raise Refusal("malformed", "No calls are made here")


DIALECT = Dialect(name="callback", to_request=_no_calls, from_outcome=_no_calls, from_refusal=_refused)


class CallbackView(base.DoorView):
    """Whoever knows the attempt's token may answer for it."""

    dialect = DIALECT

    def post(self, request: HttpRequest, request_id: str) -> Answer:
        body = base.body_of(request)
        row = _expected(request, request_id, body)
        response = _response(body, request_id)
        reception = answering.push(row, response, hashlib.sha256(body).hexdigest())
        if reception in _REFUSED:
            raise Refusal(reception.value, _REFUSED[reception], status=_STATUS[reception])
        return Answer(body={"request_id": request_id, "status": reception.value}, status=_STATUS[reception])


def _expected(request: HttpRequest, request_id: str, body: bytes) -> Callback:
    """The wait that this answer ends; 404 if there never was one, 401 if the sender does not prove to be meant."""
    rows = callbacks.of_request(request_id) if "\0" not in request_id else Callback.objects.none()
    if not rows.exists():
        raise Refusal("unknown", "No call waits for this answer, and none did", status=404)
    if (signature := request.headers.get("X-Signature")) is not None:  # where there is one, it counts alone
        row = callbacks.proven(rows, _proof(signature, request.headers.get("X-Timestamp", ""), body))
    else:
        scheme, _, token = request.headers.get("Authorization", "").partition(" ")
        row = callbacks.with_token(rows, token.strip()) if scheme.lower() == "bearer" else None
    if row is None:
        raise _not_proven()
    return row


def _proof(signature: str, moment: str, body: bytes) -> Callable[[str], bool]:
    """A test of tokens, which takes as long whatever it finds."""
    found = _SIGNATURE.fullmatch(signature)
    if found is None or not _MOMENT.fullmatch(moment) or abs(time.time() - int(moment)) > MAX_SKEW:
        raise _not_proven()
    signed, told = moment.encode() + b"." + body, found[1].lower()
    return lambda token: hmac.compare_digest(hmac.new(token.encode(), signed, hashlib.sha256).hexdigest(), told)


def _not_proven() -> Refusal:
    message = "Send the attempt's token as Bearer, or X-Signature and X-Timestamp made with it no more than 300 s ago"
    return Refusal("unauthenticated", message, status=401, headers={"WWW-Authenticate": "Bearer"})


def _response(body: bytes, request_id: str) -> dict[str, Any]:
    """A response that ends a call; anything else is refused, and the token stays good."""
    try:
        response = strictjson.loads(body, max_bytes=base.MAX_BODY)
    except strictjson.StrictJSONError as error:
        raise Refusal(error.code, error.message, status=error.status) from error
    if is_under_way(response):
        raise Refusal("malformed", "The response must say how the call ended: ok, error or denied")
    if not envelope.is_response(response):
        raise Refusal("malformed", "The body must be a Tool Contract response with the status ok, error or denied")
    if response.get("request_id") not in (None, "", request_id):
        raise Refusal("malformed", "The response answers another request than the address says")
    return dict(response)
