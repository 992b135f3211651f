"""The moves of a call that people decide about: resumed, ended, or parked again. Each follows its approval's move."""

from typing import Any

import orjson
from django.conf import settings

from audit import trail
from audit.trail import Entry
from execution import bell
from execution.errors import ErrorCode, Failure
from execution.models import Call, State
from policy.models import Approval
from registry.clock import Later

_ENDED: dict[str, Any] = {"sealed": None, "resend_at": None, "not_before": None, "finished_at": Later(0)}
CHANGED = Failure(
    code=ErrorCode.APPROVAL_DENIED,
    message="What people agreed to has changed since the first attempt; another one would need their answer",
)
_WAITING = (State.AWAITING_APPROVAL, State.QUEUED)


def resume(approval: Approval) -> bool:
    """Enough people agreed: the call may run, until the approval's time is over."""
    changes = {"state": State.QUEUED, "resend_at": Later(settings.PLACET_SWEEP), "deadline": approval.run_by}
    return _move(approval, (State.AWAITING_APPROVAL,), changes, Entry(event="call.approved", actor="system"))


def park_again(approval: Approval) -> bool:
    """Who agreed may no longer do so: the call waits for people once more."""
    changes = {"state": State.AWAITING_APPROVAL, "resend_at": None, "deadline": None, "not_before": None}
    entry = Entry(event="call.awaiting_approval", actor="worker", detail={"approval": str(approval.pk), "again": True})
    return _move(approval, (State.QUEUED,), changes, entry)


def end(approval: Approval, state: State, failure: Failure) -> bool:
    """The question was settled without a yes, or the yes no longer counts."""
    changes = _ENDED | {"state": state, "error": orjson.dumps(failure.as_json()).decode()}
    detail = {"approval": str(approval.pk), "code": failure.code.wire, "message": failure.message}
    entry = Entry(event=f"call.{state.value}", actor="system", outcome="refused", detail=detail)
    return _move(approval, _WAITING, changes, entry)


def _move(approval: Approval, states: tuple[State, ...], changes: dict[str, Any], entry: Entry) -> bool:
    """Inside the approval's transaction; a call that moved on by itself stays where it is."""
    waiting = Call.objects.filter(pk=approval.call, state__in=states, fence=0)
    if not waiting.update(**changes):
        return False
    chain = trail.chain_of("call", str(approval.call), is_locked=True)
    trail.append(chain, entry, trace_id=approval.trace_id)
    bell.ring(str(approval.call))
    return True


def refusal_of(approval: Approval) -> tuple[State, Failure] | None:
    """How a call ends with its approval; None if it does not."""
    state = Approval.State(approval.state)
    if state not in _ENDINGS:
        return None
    end, code, message = _ENDINGS[state]
    return end, Failure(
        code=code,
        message=f"{message}{_because(approval)}",
        developer_message="Make the call again under a new call_id if it is still wanted",
        details={"approval": str(approval.pk), "rule": approval.rule},
    )


def _because(approval: Approval) -> str:
    last = approval.votes.filter(answer="deny").select_related("person").first()
    return f": {last.reason}" if last is not None else ""


_ENDINGS = {
    Approval.State.DENIED: (State.DENIED, ErrorCode.APPROVAL_DENIED, "A person denied the call"),
    Approval.State.EXPIRED: (State.EXPIRED, ErrorCode.APPROVAL_TIMEOUT, "Nobody decided in time; the call did not run"),
    Approval.State.LAPSED: (
        State.EXPIRED,
        ErrorCode.APPROVAL_TIMEOUT,
        "The call was approved but could not run in time; it did not run",
    ),
    Approval.State.WITHDRAWN: (
        State.DENIED,
        ErrorCode.APPROVAL_DENIED,
        "What was asked about is no longer what would run; the approval does not count",
    ),
    Approval.State.REVOKED: (
        State.DENIED,
        ErrorCode.APPROVAL_DENIED,
        "The approval was taken back before the call ran",
    ),
}
