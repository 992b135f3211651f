"""The wire to an MCP server: one JSON-RPC message out, its answer in, as one document or at the end of a stream."""

import secrets
from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import Any, NamedTuple

from audit.canonical import canonical
from execution import egress
from execution.egress import Stream
from execution.errors import CallError, ErrorCode
from execution.runtimes import sse, upstream
from execution.runtimes.base import Invocation
from execution.traffic import NO_TRAFFIC, Traffic
from registry import strictjson

ACCEPT = "application/json, text/event-stream"
MAX_NEWS = 1_000  # of progress and logging, for one call
MAX_REPLIES = 10  # to questions of the server, for one call
REPLY_PATIENCE = 2.0  # seconds
_SPOKEN = {400, 404, 405, 406, 415, 422}  # statuses whose body may be a JSON-RPC error that says more than they do


class RpcError(Exception):
    """The server's own error object."""

    def __init__(self, code: int, message: str, status: int, traffic: Traffic) -> None:
        super().__init__(message)
        self.code, self.message, self.status, self.traffic = code, message, status, traffic


class Answered(NamedTuple):
    """The result of a request, and the headers that it came with."""

    result: dict[str, Any]
    headers: Mapping[str, str]
    traffic: Traffic


class Wire:
    """To the endpoint of one invocation, until one deadline."""

    def __init__(self, invocation: Invocation, deadline: float) -> None:
        self._invocation, self._deadline = invocation, deadline
        self._endpoint = invocation.tool.runtime.options["endpoint"]
        self._news = self._replies = 0
        self.traffic = NO_TRAFFIC

    def request(
        self, method: str, params: Mapping[str, Any], headers: Mapping[str, str], *, id: str = "", max_bytes: int
    ) -> Answered:
        """The result, RpcError, or CallError for whatever is neither."""
        id = id or new_id()
        message = {"jsonrpc": "2.0", "id": id, "method": method, "params": dict(params)}
        try:
            with self._posted(message, headers, max_bytes) as stream:
                try:
                    answered = self._answer(stream, id, headers)
                except (RpcError, CallError):
                    self.traffic += stream.traffic
                    raise
                self.traffic += stream.traffic
                return answered
        except egress.EgressError as error:
            self.traffic += error.traffic
            raise upstream.failure(error, self._invocation) from error

    def notify(self, method: str, params: Mapping[str, Any], headers: Mapping[str, str]) -> None:
        """Nobody answers a notification; a server that refuses it says so by its status."""
        message = {"jsonrpc": "2.0", "method": method, "params": dict(params)}
        response = upstream.exchange(
            self._invocation,
            "POST",
            self._endpoint,
            headers=_headers(headers),
            body=canonical(message),
            deadline=self._deadline,
        )
        self.traffic += response.traffic
        upstream.check_status(response, self._invocation)

    def _posted(self, message: Any, headers: Mapping[str, str], max_bytes: int) -> Any:
        invocation = self._invocation
        own = {**upstream.own_headers(invocation), **_headers(headers)}
        return egress.stream(
            "POST",
            self._endpoint,
            headers=egress.merged(own, invocation.credentials.headers),
            body=canonical(message),
            deadline=self._deadline,
            cancel=invocation.cancel,
            max_bytes=max_bytes,
        )

    def _answer(self, stream: Stream, id: str, headers: Mapping[str, str]) -> Answered:
        if stream.status >= 400:
            self._refuse(stream)
        kind = stream.headers.value("content-type").partition(";")[0].strip().lower()
        if kind == "text/event-stream":
            messages = self._streamed(stream, headers)
        elif kind == "application/json":
            messages = iter([_read(stream.whole(), stream.traffic)])
        else:
            raise _broken("it is neither JSON nor a stream of events", stream.traffic)
        for message in messages:
            if message.get("id") == id and ("result" in message or "error" in message):
                return Answered(_result(message, stream), stream.headers, stream.traffic)
        raise _broken("it ends without a response to the request", stream.traffic)

    def _refuse(self, stream: Stream) -> None:
        """RpcError where the body of a refusal is one, else what its status means."""
        body = b""
        with suppress(egress.AnswerTooLarge, egress.EgressFailed):
            body = stream.whole()
        if stream.status in _SPOKEN:
            with suppress(CallError):
                _result({"error": None, **_read(body, stream.traffic)}, stream)
        response = egress.Response(status=stream.status, headers=stream.headers, body=body, traffic=stream.traffic)
        upstream.check_status(response, self._invocation)

    def _streamed(self, stream: Stream, headers: Mapping[str, str]) -> Iterator[dict[str, Any]]:
        """Responses as they come; news is passed on, questions are answered with no."""
        try:
            for data in sse.events(stream.pieces()):
                message = _read(data, stream.traffic)
                if "method" not in message:
                    yield message
                elif "id" in message:
                    self._reply(message, headers)
                else:
                    self._tell(message)
        except sse.TooManyEvents:
            raise _broken("it has too many events", stream.traffic) from None

    def _tell(self, message: Mapping[str, Any]) -> None:
        params = message.get("params")
        self._news += 1
        if self._news > MAX_NEWS or not isinstance(params, dict):
            return
        if message["method"] == "notifications/progress":
            said = {"done": params.get("progress"), "total": params.get("total"), "message": params.get("message")}
            self._invocation.on_news({"kind": "progress", **said})
        elif message["method"] == "notifications/message":
            level, data = str(params.get("level", "info")), params.get("data")
            told = data if isinstance(data, str) else canonical(data).decode()
            self._invocation.on_news({"kind": "log", "level": level, "message": told})

    def _reply(self, message: Mapping[str, Any], headers: Mapping[str, str]) -> None:
        """A server may ask whether we are there; whatever else it asks for, we said that we cannot do."""
        self._replies += 1
        if self._replies > MAX_REPLIES:
            return
        answer: dict[str, Any] = {"error": {"code": -32601, "message": "This client answers no such request"}}
        if message["method"] == "ping":
            answer = {"result": {}}
        reply = {"jsonrpc": "2.0", "id": message["id"], **answer}
        with suppress(egress.EgressError), self._posted(reply, headers, 10_000) as stream:
            self.traffic += stream.traffic


def new_id() -> str:
    return secrets.token_hex(8)


def _headers(headers: Mapping[str, str]) -> dict[str, str]:
    return {"Content-Type": "application/json", "Accept": ACCEPT, **headers}


def _read(body: bytes, traffic: Traffic) -> dict[str, Any]:
    try:
        message = strictjson.loads(body, max_bytes=max(len(body), 1))
    except strictjson.StrictJSONError as error:
        raise _broken(error.message, traffic) from error
    if not isinstance(message, dict) or message.get("jsonrpc") != "2.0":
        raise _broken("it is not a JSON-RPC message", traffic)
    return message


def _result(message: Mapping[str, Any], stream: Stream) -> dict[str, Any]:
    error, result = message.get("error"), message.get("result")
    if isinstance(error, dict):
        code = error.get("code")
        number = code if isinstance(code, int) and not isinstance(code, bool) and abs(code) < 2**31 else 0
        raise RpcError(number, str(error.get("message") or ""), stream.status, stream.traffic)
    if not isinstance(result, dict):
        raise _broken("its result is not an object", stream.traffic)
    return result


def _broken(why: str, traffic: Traffic) -> CallError:
    return CallError(
        ErrorCode.EXECUTION_FAILED,
        "The tool's answer breaks the Model Context Protocol",
        developer_message=f"The answer is refused: {why}",
        can_retry=True,
        traffic=traffic,
    )
