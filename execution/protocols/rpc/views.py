"""POST /rpc: tools by plain JSON-RPC, without a handshake and without any of MCP's own rules."""

from collections.abc import Mapping

from django.http import HttpRequest

from execution.protocols.dialect import Answer, Manner, Refusal
from execution.protocols.mcp import rpcerrors
from execution.protocols.mcp.exchange import Era, Exchange
from execution.protocols.mcp.jsonrpc import Id, Message
from execution.protocols.mcp.refusing import error_of
from execution.protocols.mcp.rpcerrors import RpcError
from execution.protocols.mcp.rpcview import RpcView
from execution.protocols.mcp.serving import method_of
from policy.caller import Caller

NAMES: Mapping[int, str] = {
    rpcerrors.PARSE_ERROR: "Parse error",
    rpcerrors.INVALID_REQUEST: "Invalid request",
    rpcerrors.METHOD_NOT_FOUND: "Method not found",
    rpcerrors.INVALID_PARAMS: "Invalid params",
    rpcerrors.INTERNAL_ERROR: "Internal error",
}


def manner(id: Id | None = None) -> Manner:
    """A no in this dialect: one of five codes by its own name, and the reason under data.detail."""

    def from_refusal(refusal: Refusal) -> Answer:
        error = _plain(error_of(refusal))
        body = {"jsonrpc": "2.0", "error": error.as_error(), "id": id}
        # A request that can be answered was understood as one, whichever of its parameters is wrong.
        is_answer = error.code == rpcerrors.INVALID_PARAMS and id is not None
        return Answer(body=body, status=200 if is_answer else error.http, headers=error.headers)

    return Manner(name="rpc", from_refusal=from_refusal)


class RpcDoorView(RpcView):
    """tools/list and tools/call, each request by itself."""

    dialect = manner()
    manner = staticmethod(manner)

    def answered(self, request: HttpRequest, caller: Caller, message: Message) -> Answer:
        if message.is_response:
            raise RpcError(rpcerrors.INVALID_REQUEST, "method is missing", http=400)
        if message.id is None:
            return Answer(body=b"", status=202)
        exchange = Exchange(
            caller=caller,
            era=Era.PLAIN,
            version="",
            id=message.id,
            method=message.method,
            params=message.params,
            meta=message.meta,
        )
        return self.performed(exchange, method_of(message.method, Era.PLAIN, ""))


def _plain(error: RpcError) -> RpcError:
    """The same error within the five codes; what else was said of it stays beside the reason."""
    code = error.code if error.code in NAMES else rpcerrors.INVALID_REQUEST
    if error.code == rpcerrors.UNAVAILABLE:
        code = rpcerrors.INTERNAL_ERROR
    data = {"detail": error.message, **(error.data or {})}
    return RpcError(code, NAMES[code], data, http=error.http, headers=error.headers)
