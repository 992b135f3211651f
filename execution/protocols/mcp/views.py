"""/mcp: POST for every message, and for clients with a session GET for news and DELETE to end it."""

from collections.abc import Mapping
from dataclasses import replace

from django.http import HttpRequest

from execution import bell
from execution.models import McpSession
from execution.protocols.dialect import Answer, Refusal
from execution.protocols.mcp import (
    approvalpage,
    completions,
    eras,
    headers,
    jsonrpc,
    refusing,
    resource_metadata,
    sessions,
    sse,
    subscriptions,
)
from execution.protocols.mcp.exchange import Era, Exchange, cancel_topic
from execution.protocols.mcp.jsonrpc import Id, Message
from execution.protocols.mcp.rpcerrors import INVALID_REQUEST, RpcError
from execution.protocols.mcp.rpcview import RpcView
from execution.protocols.mcp.serving import method_of
from policy.authentication import MalformedCredential, NotAuthenticated
from policy.caller import Caller
from policy.scopes import READ

JSON, EVENTS = "application/json", "text/event-stream"
SESSION = "Mcp-Session-Id"
RETRY = b"retry: 2000\n\n"  # milliseconds after which a client may open the stream again
ACCEPTED = Answer(body=b"", status=202)


class McpView(RpcView):
    """Both eras at one address: each message says itself in which it is spoken."""

    dialect = refusing.manner()
    manner = staticmethod(refusing.manner)

    def resource(self) -> str:
        return resource_metadata.resource()

    def challenge(self, error: str) -> str:
        return resource_metadata.challenge(error)

    def unproven(self, error: NotAuthenticated, word: str) -> Refusal:
        """As OAuth has it, what cannot be a token at all is a bad request and not a bad token."""
        if not isinstance(error, MalformedCredential):
            return super().unproven(error, word)
        challenge = {"WWW-Authenticate": self.challenge("invalid_request")}
        return Refusal("invalid_request", str(error), status=400, headers=challenge)

    def check_accept(self, request: HttpRequest) -> None:
        _check_accept(request, JSON, EVENTS)

    def answered(self, request: HttpRequest, caller: Caller, message: Message) -> Answer:
        given = headers.mcp_headers(request.META)
        if eras.era_of(message, given) is Era.MODERN:
            return self._modern(caller, message, given)
        return self._legacy(caller, message, given)

    def get(self, request: HttpRequest, caller: Caller) -> Answer:
        """The stream of a session, on which it hears of changes; no answer ever comes on it."""
        given = headers.mcp_headers(request.META)
        if request.method == "HEAD" or given.get(headers.VERSION) in eras.MODERN:
            raise Refusal("method_not_allowed", "This revision has no GET", status=405, headers={"Allow": "POST"})
        _check_accept(request, EVENTS)
        self.check_scope(caller, READ)
        try:
            session = _session(caller, given)
            stream = subscriptions.standing(caller, sessions.kept(session))
            if session.version >= approvalpage.FIRST_WITH_URLS:
                stream = completions.joined(stream, session.key)
        except RpcError as error:
            raise refusing.RpcRefusal(error) from error
        return Answer(body=None, events=sse.Events(stream, jsonrpc.notification, opening=RETRY), headers=sse.HEADERS)

    def delete(self, request: HttpRequest, caller: Caller) -> Answer:
        given = headers.mcp_headers(request.META)
        if given.get(headers.VERSION) in eras.MODERN:
            raise Refusal("method_not_allowed", "This revision has no DELETE", status=405, headers={"Allow": "POST"})
        try:
            sessions.end(_session(caller, given))
        except RpcError as error:
            raise refusing.RpcRefusal(error) from error
        return Answer(body=b"", status=204)

    def _modern(self, caller: Caller, message: Message, given: Mapping[str, str]) -> Answer:
        """Stateless: all there is to know stands in the message, and some of it twice."""
        if message.is_response:
            raise RpcError(INVALID_REQUEST, "No response is expected: this server asks its clients nothing", http=400)
        if message.id is None:
            return ACCEPTED
        version = eras.modern_version(message, given)
        headers.check_method(given, message.method)
        method = method_of(message.method, Era.MODERN, version)
        if method.name_param:
            headers.check_name(given, message.params, method.name_param)
        exchange = Exchange(
            caller=caller,
            era=Era.MODERN,
            version=version,
            id=message.id,
            method=message.method,
            params=message.params,
            meta=message.meta,
            capabilities=message.meta[eras.CAPABILITIES],
            headers=given,
        )
        return self.performed(exchange, method)

    def _legacy(self, caller: Caller, message: Message, given: Mapping[str, str]) -> Answer:
        if message.method == "initialize" and message.id is not None:
            return self._begun(caller, message, message.id)
        session = _session(caller, given)
        if message.id is None or message.is_response:
            _heard(caller, message, given)
            return ACCEPTED
        exchange = Exchange(
            caller=caller,
            era=Era.LEGACY,
            version=session.version,
            id=message.id,
            method=message.method,
            params=message.params,
            meta=message.meta,
            capabilities=session.capabilities,
            session=given[headers.SESSION],
            headers=given,
            log_level=session.log_level,
        )
        return self.performed(exchange, method_of(message.method, Era.LEGACY, session.version))

    def _begun(self, caller: Caller, message: Message, id: Id) -> Answer:
        """The handshake: what it says of the client is kept until the session ends."""
        exchange = Exchange(
            caller=caller, era=Era.LEGACY, version="", id=id, method=message.method, params=message.params
        )
        answer = self.performed(exchange, method_of(message.method, Era.LEGACY, ""))
        client = message.params.get("clientInfo")
        named = client.get("name") if isinstance(client, dict) else ""
        session = sessions.begin(
            caller,
            version=answer.body["result"]["protocolVersion"],
            capabilities=message.params.get("capabilities", {}),
            client=named if isinstance(named, str) else "",
        )
        return replace(answer, headers={SESSION: session})


def _session(caller: Caller, given: Mapping[str, str]) -> McpSession:
    """The session that a request names: it has to, and it has to be the caller's own."""
    eras.check_legacy(given)
    named = given.get(headers.SESSION, "")
    if not named:
        message = f"{SESSION} is missing: begin with initialize, or send the _meta of revision {eras.MODERN[0]}"
        raise RpcError(INVALID_REQUEST, message, http=400)
    session = sessions.find(caller, named)
    if session is None:
        raise RpcError(INVALID_REQUEST, "The session is not known, or it has ended; begin anew", http=404)
    return session


def _heard(caller: Caller, message: Message, given: Mapping[str, str]) -> None:
    """The one notification that has a consequence: whoever answers that request is told that nobody waits for it."""
    given_up = jsonrpc.id_of({"id": message.params.get("requestId")})
    if message.method == "notifications/cancelled" and given_up is not None:
        bell.ring(cancel_topic(caller, given[headers.SESSION], given_up))


def _check_accept(request: HttpRequest, *needed: str) -> None:
    """A client that says what it can read must be able to read each form that an answer may have."""
    accept = request.META.get("HTTP_ACCEPT", "")
    offered = {each.partition(";")[0].strip().lower() for each in accept.split(",")}
    for kind in needed:
        if accept and offered.isdisjoint({kind, f"{kind.partition('/')[0]}/*", "*/*"}):
            listed = " and ".join(needed)
            raise Refusal("not_acceptable", f"The header Accept must name {listed}", status=406)
