"""The gRPC door: a request envelope in, admit, a response envelope out; it knows nothing of sockets."""

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from typing import Any

import orjson
from django.db import DatabaseError

from audit import trail
from execution.pipeline.admit import admit
from execution.protocols.dialect import Refusal
from execution.protocols.tool_contract import translate
from policy import keyuse
from policy.authentication import authenticate
from policy.caller import Caller
from policy.scopes import CALL
from registry import revision, strictjson

DOOR = "grpc"
MAX_MESSAGE = 1_000_000
MAX_WAIT = 55.0  # seconds


def execute(message: bytes, metadata: Mapping[str, Any], *, left: float | None = None) -> bytes:
    """The response to one request, judged by one state of the registry; NotAuthenticated if nobody proves to ask.

    `left` are the seconds that the caller still waits: who waits less is told earlier that the call goes on.
    """
    proof = {"Authorization": metadata.get("authorization", ""), "OXP-API-Key": metadata.get("oxp-api-key", "")}
    with revision.pinned():
        caller = authenticate({name: value for name, value in proof.items() if isinstance(value, str)})
        try:
            if not caller.may(CALL):
                raise Refusal("insufficient_scope", f"The token's scope lacks {CALL}", status=403)
            answer = _answered(message, caller, MAX_WAIT if left is None else max(0.0, min(MAX_WAIT, left * 0.9)))
        except Refusal as refusal:
            _record(caller, refusal)
            answer = translate.from_refusal(refusal)
    with suppress(DatabaseError):  # no watchman walks in this process
        keyuse.write_down()
    return orjson.dumps(answer, default=_plain)


def _answered(message: bytes, caller: Caller, wait: float) -> dict[str, Any]:
    try:
        body = strictjson.loads(message, max_bytes=MAX_MESSAGE)
    except strictjson.StrictJSONError as error:
        raise Refusal(error.code, error.message) from error
    request = replace(translate.to_request(body, caller), door=DOOR, wait=wait)
    return translate.from_outcome(admit(request))


def _record(caller: Caller, refusal: Refusal) -> None:
    trail.record(
        "agent",
        caller.name,
        "request.refused",
        actor=f"agent:{caller.name}",
        outcome="refused",
        detail={"door": DOOR, "code": refusal.code},
    )


def _plain(value: Any) -> Any:
    """For orjson, which knows dicts but no other mappings."""
    if isinstance(value, Mapping):
        return dict(value)
    raise TypeError(f"{type(value).__name__} is not a JSON value")
