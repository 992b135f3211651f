"""Endpoint: one way to ask a tool, for each runtime; all of them through the egress guard."""

import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Protocol
from urllib.parse import quote

import orjson
from grpclib.const import Status

from execution import egress, envelope, grpc
from execution.cancel import Cancel
from execution.conformance.reply import MAX_ANSWER, Reply
from execution.runtimes.webhook import is_under_way

POLL_EVERY = 0.2  # seconds
_BLAMES_THE_REQUEST = {Status.INVALID_ARGUMENT, Status.OUT_OF_RANGE, Status.FAILED_PRECONDITION}
_UNPROVEN = {Status.UNAUTHENTICATED, Status.PERMISSION_DENIED}


@dataclass(frozen=True, slots=True, kw_only=True)
class Asking:
    """One request as it goes out."""

    body: bytes
    request_id: str
    headers: Mapping[str, str]
    timeout: float
    cancel: Cancel | None = None


class Endpoint(Protocol):
    """Sends one request; the reply, or EgressError."""

    is_enveloped: bool  # whether requests and answers are the contract's

    def body(self, request: dict[str, Any]) -> bytes: ...

    def ask(self, asking: Asking) -> Reply: ...


class External:
    """POST of the whole envelope."""

    is_enveloped = True
    named: Mapping[str, str] = {"X-Tool-Contract-Version": envelope.VERSION, "Accept": "application/json"}

    def __init__(self, url: str) -> None:
        self.url = url

    def body(self, request: dict[str, Any]) -> bytes:
        return orjson.dumps(request)

    def ask(self, asking: Asking) -> Reply:
        return self._exchange("POST", self.url, asking, time.monotonic() + asking.timeout)

    def _exchange(self, method: str, url: str, asking: Asking, deadline: float) -> Reply:
        own = {"User-Agent": "Placet-Conform", **self.named}
        if method == "POST":
            own |= {"Content-Type": "application/json", "Idempotency-Key": asking.request_id or "none"}
        began = time.monotonic()
        response = egress.request(
            method,
            url,
            headers=egress.merged(own, asking.headers),
            body=asking.body if method == "POST" else b"",
            deadline=deadline,
            cancel=asking.cancel,
            max_bytes=MAX_ANSWER,
        )
        return Reply(
            status=str(response.status),
            is_answer=response.status < 300,
            is_our_fault=400 <= response.status < 500,
            is_unproven=response.status in (401, 403),
            body=response.body,
            headers=response.headers,
            seconds=time.monotonic() - began,
        )


class Http(External):
    """POST of the input alone."""

    is_enveloped = False
    named: Mapping[str, str] = {"Accept": "application/json, text/plain;q=0.9, */*;q=0.1"}

    def body(self, request: dict[str, Any]) -> bytes:
        return orjson.dumps(request.get("input", {}))


class Webhook(External):
    """POST of the whole envelope; what is not answered at once is asked for until it is."""

    def ask(self, asking: Asking) -> Reply:
        began = time.monotonic()
        deadline = began + asking.timeout
        reply = self._exchange("POST", self.url, asking, deadline)
        while reply.is_answer and (reply.status != "200" or is_under_way(reply.value)):
            self._pause(asking, deadline)
            reply = self.poll(asking, deadline)
        return replace(reply, seconds=time.monotonic() - began)

    def poll(self, asking: Asking, deadline: float) -> Reply:
        return self._exchange("GET", f"{self.url.rstrip('/')}/{quote(asking.request_id, safe='')}", asking, deadline)

    @staticmethod
    def _pause(asking: Asking, deadline: float) -> None:
        if time.monotonic() + POLL_EVERY > deadline:
            raise egress.EgressTimeout(True)
        if asking.cancel is None:
            time.sleep(POLL_EVERY)
        elif asking.cancel.wait(POLL_EVERY):
            raise egress.EgressCancelled(True)


class Grpc:
    """One unary call."""

    is_enveloped = True

    def __init__(self, url: str) -> None:
        self.url = url

    def body(self, request: dict[str, Any]) -> bytes:
        return orjson.dumps(request)

    def ask(self, asking: Asking, method: str = grpc.METHOD) -> Reply:
        own = {"User-Agent": "Placet-Conform", "Idempotency-Key": asking.request_id or "none"}
        began = time.monotonic()
        reply = grpc.ask(
            self.url,
            method,
            asking.body,
            headers=egress.merged(own, asking.headers),
            deadline=began + asking.timeout,
            cancel=asking.cancel,
            max_bytes=MAX_ANSWER,
        )
        return Reply(
            status=reply.status.name,
            is_answer=reply.status is Status.OK,
            is_our_fault=reply.status in _BLAMES_THE_REQUEST,
            is_unproven=reply.status in _UNPROVEN,
            body=reply.body,
            headers={**reply.metadata, "content-type": reply.content_type},
            seconds=time.monotonic() - began,
        )


ENDPOINTS: dict[str, type[External] | type[Grpc]] = {
    "external": External,
    "http": Http,
    "webhook-callback": Webhook,
    "grpc": Grpc,
}
