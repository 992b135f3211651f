"""Calls whose worker was lost: queued again, given up, or settled by a person who found out."""

from typing import Any

import orjson
from django.conf import settings
from django.db import transaction
from django.db.models.functions import Now

from audit import rows, trail
from audit.trail import Entry
from execution import abandoned, attempts, bell
from execution.calls import ENDED
from execution.errors import ErrorCode, Failure
from execution.models import Call, State
from registry.clock import Later

LOST = Failure(
    code=ErrorCode.OUTCOME_UNKNOWN, message="The worker was lost while the tool ran; it runs again", can_retry=True
)


def requeue(call: Call) -> bool:
    """The worker vanished and the tool may run again: back into the queue, for the next fence."""
    return _lose(
        call,
        {"state": State.QUEUED, "lease_until": None, "not_before": Now(), "resend_at": Later(settings.PLACET_SWEEP)},
        Entry(event="call.requeued", actor="system", outcome="failed", detail={"attempt": call.fence, "lost": True}),
        LOST,
    )


def give_up(call: Call, failure: Failure, *, state: State) -> bool:
    """The worker vanished and the tool must not run again: unknown, or failed if it killed too many workers."""
    detail = {"attempt": call.fence, "lost": True, "code": failure.code.wire, "message": failure.message}
    return _lose(
        call,
        ENDED | {"state": state, "error": orjson.dumps(failure.as_json()).decode()},
        Entry(event=f"call.{state.value}", actor="system", outcome="failed", detail=detail),
        failure,
    )


def settle(call: Call, *, actor: str, succeeded: bool, reason: str) -> bool:
    """A person says what became of a call whose outcome is unknown."""
    state = State.SUCCEEDED if succeeded else State.FAILED
    failure = Failure(code=ErrorCode.EXECUTION_FAILED, message="The call failed, as a person established")
    error = "" if succeeded else orjson.dumps(failure.as_json()).decode()
    with transaction.atomic():
        changes = {"state": state, "error": error, "finished_at": Now()}
        if not Call.objects.filter(pk=call.pk, state=State.UNKNOWN).update(**changes):
            return False
        chain = trail.chain_of("call", str(call.pk), is_locked=True)
        detail = {"state": state.value, "reason": reason}
        trail.append(chain, Entry(event="call.settled", actor=actor, detail=detail), trace_id=call.trace_id)
    return True


def _lose(call: Call, changes: dict[str, Any], entry: Entry, failure: Failure) -> bool:
    with transaction.atomic():
        lost = Call.objects.filter(pk=call.pk, state=State.RUNNING, fence=call.fence, lease_until__lt=Now())
        if not lost.update(**changes):
            return False
        rows.insert(*attempts.lost(call))
        chain = trail.chain_of("call", str(call.pk), is_locked=True)
        trail.append(chain, entry, trace_id=call.trace_id)
        bell.ring(str(call.pk))
        abandoned.tell(call, failure)
    return True
