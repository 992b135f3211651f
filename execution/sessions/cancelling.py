"""A pulled call that its caller takes back: it ends at once, and the session hears of it at its next heartbeat."""

import orjson
from django.db import transaction

from audit import rows, trail
from audit.trail import Entry
from execution import abandoned, attempts, bell
from execution.errors import ErrorCode, Failure
from execution.models import Call, State
from execution.sessions import KIND
from registry.clock import Later

_CANCELLED = Failure(code=ErrorCode.CANCELED, message="The call was cancelled while an outside worker had it")


def cancel(call: Call, actor: str) -> bool:
    """Whether a session held the call; what it answers later finds nobody."""
    if call.dispatch != KIND:
        return False
    with transaction.atomic():
        row = Call.objects.select_for_update().get(pk=call.pk)
        if row.state != State.RUNNING:
            return False
        Call.objects.filter(pk=row.pk).update(
            state=State.CANCELLED,
            error=orjson.dumps(_CANCELLED.as_json()).decode(),
            cancel_requested=True,
            sealed=None,
            lease_until=None,
            resend_at=None,
            finished_at=Later(0),
        )
        rows.insert(*attempts.cancelled(row, _CANCELLED))
        detail = {"attempt": row.fence, "code": _CANCELLED.code.wire, "message": _CANCELLED.message}
        entry = Entry(event="call.cancelled", actor=actor, outcome="failed", detail=detail)
        trail.append(trail.chain_of("call", str(row.pk), is_locked=True), entry, trace_id=row.trace_id)
        bell.ring(str(row.pk))
        abandoned.tell(row, _CANCELLED)
    return True
