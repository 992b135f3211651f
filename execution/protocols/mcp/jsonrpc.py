"""JSON-RPC 2.0: one message in, one message out; no batches."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from execution.protocols.mcp.rpcerrors import INVALID_PARAMS, INVALID_REQUEST, RpcError

MAX_METHOD = 200
MAX_ID = 1_000  # characters
NOTIFICATION = "notifications/"

Id = str | int


@dataclass(frozen=True, slots=True, kw_only=True)
class Message:
    """A request, or a notification (without an id), or a response (without a method)."""

    method: str
    id: Id | None
    params: Mapping[str, Any]
    meta: Mapping[str, Any]

    @property
    def is_response(self) -> bool:
        return not self.method


def read(body: Any) -> Message:
    """The message that a body holds; RpcError for anything else."""
    if isinstance(body, list):
        raise _invalid("Batches are not accepted; send one message at a time")
    if not isinstance(body, dict):
        raise _invalid("The message must be a JSON object")
    if body.get("jsonrpc") != "2.0":
        raise _invalid('The message must say "jsonrpc": "2.0"')
    if "id" in body and id_of(body) is None:
        raise _invalid("id must be a string or an integer, and not null")
    if "method" in body:
        return _asking(body)
    if "id" in body and ("result" in body) != ("error" in body):
        return Message(method="", id=body["id"], params={}, meta={})
    raise _invalid("method is missing")


def id_of(body: Any) -> Id | None:
    """The id that an answer to this body carries, whatever else is wrong with it."""
    found = body.get("id") if isinstance(body, dict) else None
    if isinstance(found, str) and len(found) <= MAX_ID:
        return found
    return found if type(found) is int else None


def result(id: Id, told: Mapping[str, Any]) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": id, "result": told}


def error(id: Id | None, told: Mapping[str, Any]) -> dict[str, Any]:
    """Without an id if there was none that could be read."""
    return {"jsonrpc": "2.0", **({} if id is None else {"id": id}), "error": told}


def notification(told: Mapping[str, Any]) -> dict[str, Any]:
    return {"jsonrpc": "2.0", **told}


def _asking(body: dict[str, Any]) -> Message:
    method, params = body["method"], body.get("params", {})
    if not isinstance(method, str) or not 0 < len(method) <= MAX_METHOD or not method.isprintable():
        raise _invalid(f"method must be a text of 1 to {MAX_METHOD} characters")
    if "result" in body or "error" in body:
        raise _invalid("A message is a request or a response, not both")
    if "id" not in body and not method.startswith(NOTIFICATION):
        raise _invalid("id is missing; without one only notifications are accepted")
    if "id" in body and method.startswith(NOTIFICATION):
        raise _invalid("A notification has no id")
    if not isinstance(params, dict):
        raise RpcError(INVALID_PARAMS, "params must be a JSON object", http=400)
    meta = params.get("_meta", {})
    if not isinstance(meta, dict):
        raise RpcError(INVALID_PARAMS, "params._meta must be a JSON object", http=400)
    return Message(method=method, id=body.get("id"), params=params, meta=meta)


def _invalid(why: str) -> RpcError:
    return RpcError(INVALID_REQUEST, why, http=400)
