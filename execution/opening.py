"""The first row of a call: written once, whole, with its first events, before anyone is told anything."""

import hashlib
import socket
from dataclasses import replace
from functools import lru_cache
from typing import Any
from uuid import UUID

import orjson
from django.conf import settings
from django.db import connection

from audit import guarded, trail
from audit.canonical import canonical
from audit.trail import Chain, Entry
from execution.claim import Claim, redactor_for, seal_what_runs
from execution.errors import ErrorCode, Failure
from execution.fingerprint import arguments_digest, fingerprint
from execution.messages import CallRequest
from execution.models import OPEN, Call, State
from execution.outcomes import warnings_about
from execution.sessions import KIND
from policy.decision import Decision
from registry import revision
from registry.clock import LATER, later_param
from registry.ids import new_id
from registry.toolspec import ToolSpec

QUEUE_PATIENCE = 600.0  # seconds a queued call may wait for a worker before it expires
HOST = socket.gethostname()


def open_inline(request: CallRequest, tool: ToolSpec, decision: Decision) -> Claim | None:
    """The call, already claimed by this process; None if the agent used this call_id before."""
    where = f"inline@{HOST}"
    call = _Row(request, tool, decision, state=State.RUNNING, where=where)
    chain = call.write(Entry(event="call.started", actor="system", detail={"attempt": 1, "where": where}))
    if chain is None:
        return None
    revision.confirm()
    return Claim(
        id=call.id,
        call_id=call.call_id,
        fence=1,
        agent=request.caller.name,
        tool=tool,
        arguments=request.arguments,
        context=request.context,
        trace_id=request.trace_id,
        where=where,
        chain=chain,
        door=request.door,
    )


def open_queued(request: CallRequest, tool: ToolSpec, decision: Decision, *, grant: int | None = None) -> UUID | None:
    """The call, for a worker to take; None as above."""
    return _Row(request, tool, decision, state=State.QUEUED, grant=grant).opened(
        Entry(event="call.queued", actor="system")
    )


def open_parked(request: CallRequest, tool: ToolSpec, decision: Decision, *, approval: UUID) -> UUID | None:
    """The call, waiting for people; in the transaction that opens the question to them."""
    row = _Row(request, tool, decision, state=State.AWAITING_APPROVAL, approval=approval)
    return row.opened(Entry(event="call.awaiting_approval", actor="system", detail={"approval": str(approval)}))


def open_refused(
    request: CallRequest, tool: ToolSpec | None, decision: Decision | None, failure: Failure
) -> UUID | None:
    """The call as it ended at the door: denied by policy, or rejected before it was judged."""
    state = State.DENIED if decision is not None else State.REJECTED
    call = _Row(request, tool, decision, state=state, failure=failure)
    told: dict[str, Any] = {"code": failure.code.wire, "message": failure.message}
    if call.failure is not None and call.failure.parameter_errors:
        told["parameters"] = sorted(call.failure.parameter_errors)
    return call.opened(Entry(event=f"call.{state.value}", actor="system", outcome="refused", detail=told))


class _Row:
    """Everything the insert needs, worked out before the transaction begins."""

    def __init__(
        self,
        request: CallRequest,
        tool: ToolSpec | None,
        decision: Decision | None,
        *,
        state: State,
        failure: Failure | None = None,
        where: str = "",
        approval: UUID | None = None,
        grant: int | None = None,
    ) -> None:
        self.request, self.tool, self.decision, self.state, self.failure = request, tool, decision, state, failure
        self.approval, self.grant = approval, grant
        self.id = request.id or new_id()
        self.call_id = request.call_id or str(self.id)
        redactor = redactor_for(request.context)
        if failure is not None and failure.parameter_errors:
            self.failure = replace(failure, parameter_errors=redactor.texts(failure.parameter_errors))
        shown = redactor.for_people(request.arguments, tool.input_schema if tool else None)
        self.input = canonical(shown).decode()
        self.arguments_digest = arguments_digest(tool.digest, canonical(request.arguments)) if tool else ""
        self.is_open = state in OPEN

    def opened(self, last: Entry) -> UUID | None:
        """The new call's id, or None if the agent used this call_id before, and nothing was written."""
        return self.id if self.write(last) is not None else None

    def write(self, last: Entry) -> Chain | None:
        entries = [Entry(event="call.received", actor=f"agent:{self.request.caller.name}", detail=self._received())]
        if self.decision is not None:
            entries.append(Entry(event="call.decided", actor="system", detail=self._decided(self.decision)))
        chain = trail.new_chain("call", str(self.id))
        chain, events = trail.linked(chain, *entries, last, trace_id=self.request.trace_id)
        vendor = connection.vendor
        values = self._values(vendor)
        if is_guess := revision.is_guess():
            values.append(revision.current())
        return chain if guarded.write(_insert_sql(vendor, is_guess=is_guess), values, events) else None

    def _received(self) -> dict[str, object]:
        detail: dict[str, object] = {
            "door": self.request.door,
            "tool": self.tool.tool_id if self.tool else self.request.tool_text[:200],
            "call_id": self.call_id,
            "credential": self.request.caller.credential,
            "input_sha256": hashlib.sha256(self.input.encode()).hexdigest(),
        }
        if self.tool is not None:
            detail["tool_digest"] = self.tool.digest
            detail["arguments_digest"] = self.arguments_digest
        if self.request.context.user_id:
            detail["user_id"] = self.request.context.user_id
        return detail

    @staticmethod
    def _decided(decision: Decision) -> dict[str, object]:
        return {"effect": decision.effect.value, "rule": decision.rule, "reason": decision.reason}

    def _dispatch(self) -> str:
        """Who runs it: this process, a worker, or a session that pulls it."""
        if self.tool is not None and self.tool.runtime.type == KIND:
            return KIND
        return "inline" if self.state == State.RUNNING else "queue"

    def _values(self, vendor: str) -> list[Any]:
        request, tool = self.request, self.tool
        is_running, patience = self.state == State.RUNNING, None
        if tool is not None and self.state in (State.QUEUED, State.RUNNING):
            patience = patience_for(tool)
        return [
            self.id.hex if vendor == "sqlite" else self.id,
            request.caller.agent_id,
            self.call_id,
            fingerprint(request),
            request.door,
            tool.id if tool else None,
            tool.tool_id if tool else request.tool_text[:200],
            self.state.value,
            1 if is_running else 0,
            self._dispatch(),
            False,
            self.input,
            "",
            "",
            orjson.dumps(self.failure.as_json()).decode() if self.failure else "",
            orjson.dumps(self.decision.as_json()).decode() if self.decision else "",
            orjson.dumps(warnings_about(tool)).decode() if tool and tool.is_deprecated else "",
            seal_what_runs(self.id, request.arguments, request.context) if self.is_open else None,
            self.arguments_digest,
            request.context.user_id,
            request.trace_id,
            self.approval.hex if self.approval and vendor == "sqlite" else self.approval,
            self.grant,
            _moment(vendor, settings.PLACET_SWEEP if self.state == State.QUEUED else None),
            _moment(vendor, settings.PLACET_LEASE if is_running else None),
            _moment(vendor, patience),
            _moment(vendor, 0.0 if is_running else None),
            _moment(vendor, None if self.is_open else 0.0),
        ]


def patience_for(tool: ToolSpec) -> float:
    """Seconds from now within which a call has to have run, all its attempts included."""
    retry = tool.runtime.retry
    return QUEUE_PATIENCE + retry.max_attempts * (tool.runtime.timeout + retry.max_backoff)


def reused(call_id: str) -> Failure:
    return Failure(
        code=ErrorCode.CALL_ID_REUSED,
        message="This call_id was already used for another request",
        developer_message="A call_id names one request for ever: send a new one, or repeat the first request exactly",
        parameter_errors={"call_id": "Was already used for another request"},
    )


_PLAIN = (
    "id",
    "agent_id",
    "call_id",
    "fingerprint",
    "door",
    "tool_id",
    "tool_ref",
    "state",
    "fence",
    "dispatch",
    "cancel_requested",
    "input",
    "result",
    "result_kind",
    "error",
    "decision",
    "warnings",
    "sealed",
    "arguments_digest",
    "user_id",
    "trace_id",
    "approval_id",
    "grant_id",
)
_MOMENTS = ("resend_at", "lease_until", "deadline", "started_at", "finished_at")


@lru_cache(maxsize=4)
def _insert_sql(vendor: str, *, is_guess: bool) -> str:
    """Sets every moment by the database's clock; an earlier row under the same call_id wins, and so does a revision
    that is another one than was guessed.
    """
    columns = ", ".join(f'"{column}"' for column in [*_PLAIN, *_MOMENTS])
    values = ", ".join(["%s"] * len(_PLAIN) + [LATER[vendor]] * len(_MOMENTS))
    table = Call._meta.db_table
    rows = f"SELECT {values} WHERE {revision.IS_STILL}" if is_guess else f"VALUES ({values})"
    return f'INSERT INTO "{table}" ({columns}) {rows} ON CONFLICT ("agent_id", "call_id") DO NOTHING'


def _moment(vendor: str, seconds: float | None) -> float | str | None:
    return None if seconds is None else later_param(vendor, seconds)


def record_reuse(request: CallRequest, failure: Failure) -> None:
    """A refusal that may have no row of its own, since its call_id belongs to another call, is told of the agent."""
    _tell_of_agent(request, "call.id_reused", {"code": failure.code.wire})


def record_turned_away(request: CallRequest, tool: ToolSpec, failure: Failure) -> None:
    """A call that came too soon leaves its call_id free, so that the same request can come again."""
    event = "call.rate_limited" if failure.code is ErrorCode.RATE_LIMITED else "call.turned_away"
    _tell_of_agent(request, event, {"tool": tool.tool_id, "message": failure.message})


def _tell_of_agent(request: CallRequest, event: str, detail: dict[str, Any]) -> None:
    agent, known = request.caller.name, {"door": request.door, "call_id": request.call_id}
    trail.record("agent", agent, event, actor=f"agent:{agent}", outcome="refused", detail=known | detail)
