"""RpcView: one JSON-RPC message by POST, for /mcp and for /rpc."""

from collections.abc import Callable
from typing import Any

from django.http import HttpRequest

from execution.protocols.base import AgentView
from execution.protocols.dialect import Answer, Manner, Refusal
from execution.protocols.mcp import jsonrpc, origins, serving, sse
from execution.protocols.mcp.exchange import Exchange, Stream
from execution.protocols.mcp.jsonrpc import Id, Message
from execution.protocols.mcp.methods import Method
from execution.protocols.mcp.refusing import RpcRefusal, error_of
from execution.protocols.mcp.rpcerrors import RpcError
from policy.caller import Caller


class RpcView(AgentView):
    """Whatever happens, the answer is JSON-RPC and carries the id of the request."""

    scope = ""  # each method has its own
    manner: Callable[[Id | None], Manner]  # how the door says no to a request of this id
    answered: Callable[[HttpRequest, Caller, Message], Answer]  # raises RpcError

    def _handler(self, request: HttpRequest) -> Any:
        if not origins.is_allowed(request.META.get("HTTP_ORIGIN", "")):
            raise Refusal("foreign_origin", "Pages of this Origin may not speak to this server", status=403)
        return super()._handler(request)

    def post(self, request: HttpRequest, caller: Caller) -> Answer:
        self.check_accept(request)
        body = self.read_json(request)
        self.dialect = self.manner(jsonrpc.id_of(body))
        try:
            return self.answered(request, caller, jsonrpc.read(body))
        except RpcError as error:
            refusal = RpcRefusal(error)
            if error.is_recorded:
                return self.dialect.from_refusal(refusal)
            raise refusal from error
        except Refusal as refusal:
            raise RpcRefusal(error_of(refusal), refusal.code) from refusal

    def check_accept(self, request: HttpRequest) -> None:
        """What a client must be ready to receive, if the door has an opinion on that."""

    def performed(self, exchange: Exchange, method: Method) -> Answer:
        """The method's answer as one JSON object, or as a stream if there is more to tell before it."""
        if method.scope:
            self.check_scope(exchange.caller, method.scope)
        answer = method.answer(exchange)
        if not isinstance(answer, Stream):
            return Answer(body=serving.told(exchange, {"result": answer}))
        first = next(answer.messages, None)  # begun here: only an iterator that runs can be told to stop
        if serving.is_last(first):
            sse.close(answer.messages)
            return Answer(body=serving.told(exchange, first or {}))
        events = sse.Events(answer, lambda message: serving.told(exchange, message), first=first)
        return Answer(body=None, events=events, headers=sse.HEADERS)
