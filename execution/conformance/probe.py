"""Probe: asks one endpoint, with the inputs and the credentials that its author gave for it."""

import secrets
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from execution import egress, envelope
from execution.cancel import Cancel
from execution.conformance.endpoints import Asking, Endpoint
from execution.conformance.reply import Reply
from execution.conformance.verdict import Failed, NotApplicable, shown

TRACE = {"trace_id": "4bf92f3577b34da6a3ce929d0e0e4736", "span_id": "00f067aa0ba902b7"}


@dataclass(kw_only=True)
class Probe:
    """`fail`, `slow` and `denied` are inputs with which the tool does just that; None if its author named none."""

    endpoint: Endpoint
    runtime: str
    tool: str = "conformance_probe"
    input: Mapping[str, Any] = field(default_factory=dict)
    fail: Mapping[str, Any] | None = None
    slow: Mapping[str, Any] | None = None
    denied: Mapping[str, Any] | None = None
    credentials: Mapping[str, str] = field(default_factory=dict, repr=False)
    timeout: float = 5.0
    first_id: str = field(default_factory=lambda: f"conform-{secrets.token_hex(8)}")
    _first: Reply | Failed | None = None

    def request(self, **changes: Any) -> dict[str, Any]:
        """A whole request under a new id; a field that is changed to None is left out."""
        request: dict[str, Any] = {
            "tool_contract_version": envelope.VERSION,
            "request_id": f"conform-{secrets.token_hex(8)}",
            "namespace": "default",
            "agent": "conform",
            "attempt": 1,
            "tool": {"name": self.tool, "operation": "invoke", "capabilities": [], "risk_level": "low"},
            "input": dict(self.input),
            "input_raw": "",
            "runtime": {
                "mode": self.runtime,
                "timeout_ms": round(self.timeout * 1000),
                "max_attempts": 1,
                "backoff": "exponential",
                "max_backoff_ms": 30_000,
                "jitter": False,
            },
            "trace": dict(TRACE),
            **changes,
        }
        return {name: value for name, value in request.items() if value is not None}

    def ask(
        self,
        request: Mapping[str, Any] | bytes,
        *,
        credentials: Mapping[str, str] | None = None,
        timeout: float | None = None,
        cancel: Cancel | None = None,
    ) -> Reply:
        """The reply; no reply at all is a failure of whichever check asked."""
        asking = Asking(
            body=request if isinstance(request, bytes) else self.endpoint.body(dict(request)),
            request_id="" if isinstance(request, bytes) else str(request.get("request_id", "")),
            headers=self.credentials if credentials is None else credentials,
            timeout=timeout or self.timeout,
            cancel=cancel,
        )
        return self.heard(lambda: self.endpoint.ask(asking))

    def heard(self, ask: Callable[[], Reply]) -> Reply:
        """What it brings; that we may not ask, or no longer want to, is no fault of the endpoint."""
        try:
            return ask()
        except (egress.EgressDenied, egress.EgressCancelled):
            raise
        except egress.EgressError as error:
            raise Failed(f"no answer: {error.reason}") from None

    def answered(self, request: Mapping[str, Any]) -> Reply:
        """The reply to a request that must succeed."""
        reply = self.ask(request)
        if not reply.is_answer:
            raise Failed(f"a valid request was answered {reply.status}")
        if self.endpoint.is_enveloped and reply.response is None:
            raise Failed(f"the answer is no response of the contract: {shown(reply.body[:60].decode('latin-1'))}")
        if reply.response is not None and reply.response["status"] != "ok":
            raise Failed(f"a valid request was answered {reply.kind}; does --input suit the tool?")
        return reply

    def opening(self) -> Reply:
        """The reply to the first valid request, asked for once; Failed, each time, if it was none to go on with."""
        if self._first is None:
            try:
                self._first = self.answered(self.request(request_id=self.first_id))
            except Failed as failed:
                self._first = failed
        if isinstance(self._first, Failed):
            raise self._first
        return self._first

    def first(self) -> Reply:
        """The same for the checks that have nothing to judge without it."""
        try:
            return self.opening()
        except Failed:
            raise NotApplicable("no valid request was answered") from None

    def response(self) -> dict[str, Any]:
        """The first reply as a response; only where the contract's envelope is spoken."""
        self.enveloped()
        return self.first().response or {}

    def refusal(self, **changes: Any) -> Reply:
        """The reply to a request that the contract forbids."""
        self.enveloped()
        self.first()
        return self.ask(self.request(**changes))

    def enveloped(self) -> None:
        if not self.endpoint.is_enveloped:
            raise NotApplicable("an http tool gets its input and nothing else")
