"""The moves of a call whose tool answers later: into the wait, and out of it when nobody wants the answer any more."""

from typing import Any

import orjson
from django.db import transaction

from audit import rows, trail
from audit.trail import Entry
from execution import abandoned, attempts, bell, callbacks, moves
from execution.claim import Claim
from execution.errors import ErrorCode, Failure
from execution.models import Call, State
from execution.traffic import Traffic
from registry.clock import Later

_CANCELLED = Failure(code=ErrorCode.CANCELED, message="The call was cancelled while it waited for the tool's answer")
_ENDED: dict[str, Any] = {"sealed": None, "resend_at": None, "finished_at": Later(0)}


def begin(claim: Claim, traffic: Traffic) -> bool:
    """From running to waiting; False if the answer was faster than we, or the call was taken over."""
    entry = Entry(event="call.waiting_callback", actor="worker", detail={"attempt": claim.fence})
    with transaction.atomic():
        call = Call.objects.select_for_update().get(pk=claim.id)
        if call.fence != claim.fence or call.state != State.RUNNING:
            return call.fence == claim.fence and call.state == State.WAITING_CALLBACK  # a try before this one did it
        chain = trail.chain_of("call", str(claim.id), is_locked=True)
        claim.chain.move_to(chain)
        linked, events = trail.linked(chain, entry, trace_id=claim.trace_id)
        changes = {"state": State.WAITING_CALLBACK.value, "lease_until": None}
        if not moves.move(claim.id, claim.fence, changes, events):
            return False
        claim.chain.move_to(linked)
        callbacks.await_answer(claim, traffic)
        bell.ring(str(claim.id))
    if call.cancel_requested:
        cancel(call, "worker")
    return True


def cancel(call: Call, actor: str) -> bool:
    """Whether the call was waiting; it ends at once, and an answer that comes later finds nobody."""
    with transaction.atomic():
        row = Call.objects.select_for_update().get(pk=call.pk)
        if row.state != State.WAITING_CALLBACK:
            return False
        error = orjson.dumps(_CANCELLED.as_json()).decode()
        waiting = Call.objects.filter(pk=call.pk, state=State.WAITING_CALLBACK, fence=row.fence)
        if not waiting.update(**_ENDED, state=State.CANCELLED, error=error, cancel_requested=True):
            return False
        callbacks.close(row.pk, row.fence)
        spent = callbacks.traffic_of(callbacks.of_attempt(row.pk, row.fence))
        rows.insert(*attempts.cancelled(row, _CANCELLED, spent))
        detail = {"attempt": row.fence, "code": _CANCELLED.code.wire, "message": _CANCELLED.message}
        entry = Entry(event="call.cancelled", actor=actor, outcome="failed", detail=detail)
        trail.append(trail.chain_of("call", str(row.pk), is_locked=True), entry, trace_id=row.trace_id)
        bell.ring(str(row.pk))
        abandoned.tell(row, _CANCELLED)
    return True
