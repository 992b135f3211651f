"""The row of an attempt, made when it ended; execution/calls.py writes it with the move of the call."""

from datetime import UTC, datetime
from typing import Any

import orjson

from audit.models import Event
from audit.rows import Rows
from execution.claim import Claim
from execution.errors import Failure
from execution.models import Attempt, Call
from execution.traffic import NO_TRAFFIC, Traffic

MAX_STATUS = 40

_COLUMNS = (
    "call_id",
    "number",
    "where",
    "started_at",
    "finished_at",
    "status",
    "code",
    "detail",
    "retry_after",
    "sent",
    "received",
    "upstream_status",
)


def ended(claim: Claim, status: str, failure: Failure | None, delay: float | None, traffic: Traffic) -> Rows:
    """What came of a claim; `delay` is the time until the next attempt, if there is to be one."""
    code, detail = (failure.code.wire, failure.message) if failure else ("", "")
    return _rows(claim.id, claim.fence, claim.where, claim.started_at, status, code, detail, delay, traffic)


def lost(call: Call) -> Rows:
    """An attempt of which nobody will tell how it ended."""
    return _rows(call.pk, call.fence, *begun(call), "lost", "", "", None, NO_TRAFFIC)


def cancelled(call: Call, failure: Failure, traffic: Traffic = NO_TRAFFIC) -> Rows:
    """An attempt that nobody waits for any more."""
    told = (failure.code.wire, failure.message)
    return _rows(call.pk, call.fence, *begun(call), "cancelled", *told, None, traffic)


def begun(call: Call) -> tuple[str, datetime | None]:
    """Where and when the attempt under the call's fence began, as the trail has it: each fence has one beginning."""
    started = Event.objects.filter(subject_kind="call", subject_id=str(call.pk), event="call.started").order_by("seq")
    for event in started[call.fence - 1 : call.fence]:
        return str(orjson.loads(event.detail).get("where", "")), event.at
    return "", call.started_at


def _rows(call: Any, number: int, where: str, started: datetime | None, *ending: Any) -> Rows:
    *told, (sent, received, upstream) = ending
    row = (call, number, where, started, datetime.now(UTC), *told, sent, received, upstream[:MAX_STATUS])
    return Rows(Attempt, _COLUMNS, [row])
