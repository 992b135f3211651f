"""The late answer of a tool finds its call: pushed by the tool, fetched by us, or missed when its time is over."""

import logging
import os
from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime
from enum import Enum
from typing import Any

from django.db import transaction

from audit import trail
from audit.trail import Entry
from execution import callbacks, dispatch, envelope
from execution.claim import Claim
from execution.credentials import Credentials
from execution.errors import CallError, ErrorCode
from execution.models import Call, Callback, State
from execution.opening import HOST
from execution.pipeline import perform
from execution.pipeline.perform import Ending
from execution.pipeline.steps import check_output
from execution.resuming import taken_up
from execution.returnaddress import return_address
from execution.runtimes import WEBHOOK
from execution.runtimes.base import AnswersLater, RunResult
from execution.runtimes.webhook import LookFailed
from execution.traffic import Traffic

logger = logging.getLogger(__name__)

HELD = (State.RUNNING, State.WAITING_CALLBACK)
LOOK_AT_MOST_EVERY = 60.0  # seconds, whatever a tool asks for
AFTER = 0.1  # seconds after a deadline, so that the database's clock has passed it too


class Reception(Enum):
    """What became of an answer."""

    DELIVERED = "delivered"
    REPEATED = "repeated"  # the very answer that was taken before
    CONFLICT = "conflict"  # another one was taken, or the call ended without one
    EXPIRED = "expired"


def push(row: Callback, response: Mapping[str, Any], digest: str) -> Reception:
    """A tool's answer that it sent by itself and that proved to be for this attempt."""
    call = Call.objects.get(pk=row.call_id)
    refusal = _refusal(row, call, digest)
    if refusal is None:
        claim, unreadable = _claim(row, call, "push")
        refusal = _finish(row, claim, unreadable or _judged(claim, response), digest=digest)
    if refusal in (Reception.CONFLICT, Reception.EXPIRED):
        _record_refused(row, refusal, digest)
    return refusal


def look(pk: int) -> None:
    """Ask the tool whether the answer is there, if it is time to, and by nobody else being asked already."""
    for late in callbacks.overdue().filter(pk=pk):
        expire(late)
    row = callbacks.take_poll(pk)
    if row is None:
        return
    call = Call.objects.get(pk=row.call_id)
    if _refusal(row, call, "") is not None:
        expire(row)
        return
    claim, unreadable = _claim(row, call, "poll")
    if unreadable is not None:
        _finish(row, claim, unreadable)
        return
    timeout = max(0.01, min(callbacks.POLL_PATIENCE, (row.deadline - datetime.now(UTC)).total_seconds()))

    def ask(credentials: Credentials) -> RunResult:
        callbacks.know(row, claim)
        address = return_address(row.request_id, callbacks.token_of(row))
        invocation = perform.invocation(claim, credentials, address)
        return WEBHOOK.poll(replace(invocation, timeout=timeout))

    try:
        result = perform.with_credentials(claim, ask)
        check_output(claim.tool, result)
    except LookFailed as failed:
        _look_again(row, failed.traffic, delay=failed.delay, is_failed=True)
    except AnswersLater as later:
        _look_again(row, later.traffic)
    except CallError as error:
        if error.code is ErrorCode.SECRET_UNRESOLVED and error.failure.can_retry:  # where it lies is away just now
            _look_again(row, error.traffic, is_failed=True)
        else:
            _finish(row, claim, error)
    else:
        _finish(row, claim, result)


def expire(row: Callback) -> None:
    """Its time is over: the attempt has failed; if the call went on without it, nobody waits for it any more."""
    call = Call.objects.get(pk=row.call_id)
    if call.fence != row.fence or call.state not in HELD:
        callbacks.settle(row, Callback.State.CLOSED)
    elif call.state == State.WAITING_CALLBACK and callbacks.is_late(row):
        claim, _ = _claim(row, call, "deadline")
        timeout = claim.tool.runtime.timeout
        details = {"tool": claim.tool.tool_id, "request_id": row.request_id, "timeout_ms": round(timeout * 1000)}
        message = f"The tool took the call and did not answer within {timeout:g} s"
        _finish(row, claim, CallError(ErrorCode.TIMEOUT, message, details=details), state=Callback.State.EXPIRED)


def _judged(claim: Claim, response: Mapping[str, Any]) -> Ending:
    try:
        result = envelope.result_of(response, perform.invocation(claim, Credentials()))
        check_output(claim.tool, result)
    except CallError as error:
        return error
    return result


def _finish(
    row: Callback, claim: Claim, ending: Ending, *, digest: str = "", state: Callback.State = Callback.State.ANSWERED
) -> Reception:
    """The one way out of a wait: under the call's lock, from an open callback and the fence it was made for."""
    delay = None
    with transaction.atomic():
        call = Call.objects.select_for_update().get(pk=claim.id)
        current = callbacks.held(row.pk)
        refusal = _refusal(current, call, digest)
        if refusal is not None and not (refusal is Reception.EXPIRED and state is Callback.State.EXPIRED):
            return refusal
        callbacks.settle(current, state, digest)
        chain = trail.chain_of("call", str(call.pk), is_locked=True)
        claim = replace(claim, chain=chain, held=State(call.state))
        if state is Callback.State.ANSWERED:
            detail = {"attempt": claim.fence, "by": claim.where.partition("@")[0], "looks": current.polls}
            trail.append(chain, Entry(event="call.answered", actor="system", detail=detail), trace_id=claim.trace_id)
        spent = Traffic(current.sent, current.received, current.upstream_status) + ending.traffic
        if isinstance(ending, RunResult):
            ending = replace(ending, traffic=spent)
        else:
            ending.is_sent, ending.traffic = True, spent
        delay = perform.conclude(claim, ending, may_retry=not call.cancel_requested)
    if delay is not None:
        dispatch.send(claim.id, delay=delay)
    return Reception.DELIVERED if state is Callback.State.ANSWERED else Reception.EXPIRED


def _refusal(row: Callback, call: Call, digest: str) -> Reception | None:
    """Why an answer can no longer be taken, or None."""
    match row.state:
        case Callback.State.ANSWERED:
            return Reception.REPEATED if digest and digest == row.answer_digest else Reception.CONFLICT
        case Callback.State.EXPIRED:
            return Reception.EXPIRED
        case Callback.State.CLOSED:
            return Reception.CONFLICT
    if call.fence != row.fence or call.state not in HELD:
        return Reception.CONFLICT
    return Reception.EXPIRED if callbacks.is_late(row) else None


def _record_refused(row: Callback, why: Reception, digest: str) -> None:
    """It came too late, or is not the one that was taken: nothing changes, and everybody can read that it came."""
    with transaction.atomic():
        call = Call.objects.select_for_update().get(pk=row.call_id)
        if not callbacks.note_refused(row):
            return
        detail = {"attempt": row.fence, "reason": why.value, "body_sha256": digest}
        entry = Entry(event="call.callback_refused", actor="system", outcome="refused", detail=detail)
        trail.append(trail.chain_of("call", str(call.pk), is_locked=True), entry, trace_id=call.trace_id)


def _look_again(row: Callback, traffic: Traffic, *, delay: float = 0.0, is_failed: bool = False) -> None:
    pause = min(max(delay, callbacks.POLL_EVERY), LOOK_AT_MOST_EVERY)
    callbacks.polled(row, traffic, delay=pause, is_failed=is_failed)
    left = (row.deadline - datetime.now(UTC)).total_seconds() + AFTER
    dispatch.look(row.pk, delay=min(pause, max(AFTER, left)))


def _claim(row: Callback, call: Call, by: str) -> tuple[Claim, CallError | None]:
    where = f"{by}@{HOST}:{os.getpid()}"
    return taken_up(call, row.fence, began=row.asked_at, where=where, needles=lambda: callbacks.needles_of(row))
