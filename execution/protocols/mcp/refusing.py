"""Refusing: every no in the form of JSON-RPC, with the HTTP status that fits."""

from collections.abc import Mapping

from execution.protocols.dialect import Answer, Manner, Refusal
from execution.protocols.mcp import jsonrpc, rpcerrors
from execution.protocols.mcp.jsonrpc import Id
from execution.protocols.mcp.rpcerrors import RpcError

# What a refusal in words, of the parts that all doors share, is in numbers.
_UNREADABLE = frozenset({"malformed", "bad_utf8", "bad_character", "bad_number", "duplicate_key", "too_deep"})
_BY_STATUS: Mapping[int, int] = {
    401: rpcerrors.UNAUTHENTICATED,
    403: rpcerrors.FORBIDDEN,
    429: rpcerrors.TOO_MANY,
    500: rpcerrors.INTERNAL_ERROR,
    503: rpcerrors.UNAVAILABLE,
}
_WORDS: Mapping[int, str] = {
    rpcerrors.PARSE_ERROR: "malformed",
    rpcerrors.INVALID_REQUEST: "invalid_request",
    rpcerrors.METHOD_NOT_FOUND: "unknown_method",
    rpcerrors.INVALID_PARAMS: "invalid_params",
    rpcerrors.INTERNAL_ERROR: "internal",
    rpcerrors.HEADER_MISMATCH: "header_mismatch",
    rpcerrors.MISSING_CAPABILITY: "missing_capability",
    rpcerrors.UNSUPPORTED_VERSION: "unsupported_version",
    rpcerrors.FORBIDDEN: "forbidden",
    rpcerrors.TOO_MANY: "too_many",
    rpcerrors.UNAVAILABLE: "unavailable",
}


class RpcRefusal(Refusal):
    """An RpcError on its way through the parts that all doors share."""

    def __init__(self, error: RpcError, word: str = "") -> None:
        word = word or _WORDS.get(error.code, str(error.code))
        super().__init__(word, error.message, status=error.http, headers=error.headers)
        self.error = error


def error_of(refusal: Refusal) -> RpcError:
    """The same refusal as a JSON-RPC error."""
    if isinstance(refusal, RpcRefusal):
        return refusal.error
    code = _BY_STATUS.get(refusal.status, rpcerrors.INVALID_REQUEST)
    if refusal.status == 400 and refusal.code in _UNREADABLE:
        code = rpcerrors.PARSE_ERROR
    data = {"code": refusal.code}
    return RpcError(code, refusal.message, data, http=refusal.status, headers=refusal.headers)


def manner(id: Id | None = None) -> Manner:
    """How /mcp says no to a request of this id."""

    def from_refusal(refusal: Refusal) -> Answer:
        error = error_of(refusal)
        return Answer(body=jsonrpc.error(id, error.as_error()), status=error.http, headers=error.headers)

    return Manner(name="mcp", from_refusal=from_refusal)
