"""Task status: a call's row as the tasks of either era tell of it. A task is a call, and its id is the call's."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any

import orjson

from execution.models import Call, State
from execution.outcomes import approval_url
from execution.protocols.mcp.exchange import Era, Exchange

POLL_SOON = 1_000  # milliseconds until the next look at what a machine does
POLL_LATER = 5_000  # and at what a person does
MODERN, LEGACY = ("ttlMs", "pollIntervalMs"), ("ttl", "pollInterval")
_DOING = {
    State.QUEUED: "The call is queued.",
    State.RUNNING: "The call is running.",
    State.WAITING_CALLBACK: "The call waits for the tool's answer.",
}


def legacy_status(call: Call) -> str:
    """A revision in which a cancelled task stays cancelled whatever its tool does, and a tool's error is a failure."""
    if call.state == State.CANCELLED or call.cancel_requested:
        return "cancelled"
    if call.is_open:
        return "working"
    return "completed" if call.state == State.SUCCEEDED else "failed"


def is_final(call: Call) -> bool:
    return legacy_status(call) != "working"


def task(call: Call, exchange: Exchange, status: str) -> dict[str, Any]:
    """What every answer about a task has; calls are kept, so that no task expires."""
    ttl, interval = MODERN if exchange.era is Era.MODERN else LEGACY
    told: dict[str, Any] = {
        "taskId": str(call.pk),
        "status": status,
        "createdAt": _text(call.created_at),
        "lastUpdatedAt": _text(_last_update(call)),
        ttl: None,
    }
    if message := status_message(call):
        told["statusMessage"] = message
    if call.is_open:
        told[interval] = POLL_LATER if call.state == State.AWAITING_APPROVAL else POLL_SOON
    return told


def status_message(call: Call) -> str:
    """Where a person can help, how the call ended, or what it does."""
    if call.state == State.AWAITING_APPROVAL and call.approval_id is not None:
        return f"{reason(call)} Someone who may approve it decides at {approval_url(call.approval_id)}"
    if call.cancel_requested and call.state != State.CANCELLED:
        return f"The call was asked to stop; it is {State(call.state).label.lower()}."
    if call.error:
        return str(orjson.loads(call.error).get("message", ""))
    return _DOING.get(State(call.state), "")


def reason(call: Call) -> str:
    """Why people were asked, as a sentence."""
    decision: Mapping[str, Any] = orjson.loads(call.decision) if call.decision else {}
    why = str(decision.get("reason") or "the policy says so").rstrip(". ")
    return f"A person must agree to {call.tool_ref} first: {why}."


def _last_update(call: Call) -> datetime:
    decided = call.approval.decided_at if call.approval is not None else None
    moments = (call.created_at, decided, call.started_at, call.finished_at)
    return max(moment for moment in moments if moment is not None)


def _text(moment: datetime) -> str:
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")
