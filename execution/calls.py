"""Claim, finish, retry, cancel, lose: every move of a call after its first row, each one conditional update."""

import contextlib
import hashlib
import logging
import os
from typing import Any
from uuid import UUID

import orjson
from django.conf import settings
from django.db import DatabaseError, IntegrityError, transaction

from audit import trail
from audit.canonical import canonical
from audit.redaction import UNREDACTABLE, clip
from audit.trail import Chain, Entry
from execution import attempts, bell, breakers, hooks, insisting, moves, parking, reading, telemetry, waiting
from execution.claim import Claim, seal_answer, unseal_what_runs
from execution.errors import ErrorCode, Failure
from execution.messages import CallOutcome
from execution.models import Attempt, Call, State
from execution.opening import HOST, patience_for
from execution.outcomes import ended
from execution.runtimes.base import RunResult
from execution.sessions import KIND, cancelling
from execution.traffic import NO_TRAFFIC, Traffic
from policy import approvals, grants
from policy.approvals import Use
from registry import revision
from registry.clock import Later
from registry.toolspec import ToolSpec

logger = logging.getLogger(__name__)

MAX_TEXT = 4_000
_WAITING = (State.AWAITING_APPROVAL, State.QUEUED)
_CANCELLABLE = (State.QUEUED, State.RUNNING, State.WAITING_CALLBACK)
_ENDS = {ErrorCode.TIMEOUT: State.TIMED_OUT, ErrorCode.CANCELED: State.CANCELLED}
UNSHOWABLE = Failure(
    code=ErrorCode.EXECUTION_FAILED,
    message="The tool answered, but its answer could not be searched for secrets and is not shown",
)
ENDED: dict[str, Any] = {"sealed": None, "lease_until": None, "resend_at": None, "finished_at": Later(0)}


def read(id: UUID) -> Call | None:
    return reading.row(id)


def claim(call: Call, tool: ToolSpec, agent: str, *, bound: str = "", where: str = "", actor: str = "") -> Claim | None:
    """Take a queued call with the next fence; None if it is no longer there to take as it was judged.

    A call that people agreed to uses their approval up in the same transaction, if it is still `bound` to this.
    It is for this process, unless someone elsewhere takes it: then `where` and `actor` say who.
    """
    if call.sealed is None:
        return None
    hands = (where or f"worker@{HOST}:{os.getpid()}", actor)
    if call.approval_id is None and call.grant_id is None:
        return _claim(call, tool, agent, call.sealed, *hands)
    with transaction.atomic():
        if not revision.hold() or not _is_agreed_to(call, bound):
            return None
        taken = _claim(call, tool, agent, call.sealed, *hands)
        if taken is None:
            transaction.set_rollback(True)
        return taken


def _is_agreed_to(call: Call, bound: str) -> bool:
    """Whether the yes of people still counts; if an approval's no longer does, the call has moved with it."""
    if call.approval_id is None:
        return call.grant_id is None or grants.hold(call.grant_id)
    if approvals.use(call.approval_id, digest=bound, is_retry=call.fence > 0) is Use.GOOD:
        return True
    if call.fence > 0:  # used by an attempt before this one, so that the approval itself can no longer move
        deny(call, parking.CHANGED)
    return False


def _claim(call: Call, tool: ToolSpec, agent: str, sealed: bytes | memoryview, where: str, actor: str) -> Claim | None:
    arguments, context = unseal_what_runs(call.pk, sealed)
    detail = {"attempt": call.fence + 1, "where": where}
    started = Entry(event="call.started", actor=actor or "worker", detail=detail)
    chain = _take(call, tool, started)
    if chain is None:
        return None
    return Claim(
        id=call.pk,
        call_id=call.call_id,
        fence=call.fence + 1,
        agent=agent,
        tool=tool,
        arguments=arguments,
        context=context,
        trace_id=call.trace_id,
        where=where,
        chain=chain,
        door=call.door,
        actor=actor,
    )


def _take(call: Call, tool: ToolSpec, started: Entry) -> Chain | None:
    """The call's chain with its new event, or None; tried again when a neighbour's event came in between."""
    # An approval says until when a call may begin; from here on it has the time that every call has.
    patience = patience_for(tool) if call.approval_id is not None else None
    for is_last in (False, False, True):
        tail = trail.tail_of("call", str(call.pk))
        chain, events = trail.linked(tail, started, trace_id=call.trace_id)
        try:
            return chain if moves.take(call, settings.PLACET_LEASE, patience, events) else None
        except IntegrityError:
            if is_last:
                raise
    return None


def deny(call: Call, failure: Failure, states: tuple[State, ...] = (State.QUEUED,)) -> bool:
    """A queued call that policy no longer allows, or whose tool is gone."""
    detail = {"code": failure.code.wire, "message": failure.message}
    return _end_queued(call, State.DENIED, failure, "call.denied", "system", detail, states=states)


def deny_asked(call: Call, approval: UUID, failure: Failure) -> None:
    """As above, for a call that people were asked about: the question ends with it, even if it is open again."""
    with transaction.atomic():
        is_withdrawn = approvals.withdraw(approval, by="worker", reason=failure.message)
        deny(call, failure, _WAITING if is_withdrawn else (State.QUEUED,))


def expire(call: Call) -> bool:
    """A queued call that no worker took in time."""
    whoever = "worker could run the call"
    if call.dispatch == KIND:
        whoever = f"session that serves {call.tool_ref.partition('.')[0]} took the call"
    message = f"No {whoever} {'again in time' if call.fence else 'in time; it did not run'}"
    failure = Failure(code=ErrorCode.EXPIRED, message=message, can_retry=True)
    detail = {"message": message, **_so_far(call)} if call.fence or call.dispatch == KIND else {}
    return _end_queued(call, State.EXPIRED, failure, "call.expired", "system", detail)


def defer(call: Call, delay: float) -> None:
    """Not now: the call stays queued, and nobody looks for it before `delay` seconds are over."""
    queued = Call.objects.filter(pk=call.pk, state=State.QUEUED, fence=call.fence)
    queued.update(not_before=Later(delay), resend_at=Later(delay + settings.PLACET_SWEEP))


def succeed(claim: Claim, result: RunResult) -> CallOutcome | None:
    """Record what the tool returned; the caller gets it with secrets removed, people see the redacted copy.

    None if the call was taken over meanwhile, and goes on without this attempt.
    """
    redactor = claim.redactor
    returned: Any = list(result.content) if result.content else result.value
    answer = redactor.for_caller(returned)
    seen = redactor.for_people(answer, claim.tool.output_schema)
    if seen == UNREDACTABLE != returned:
        return fail(claim, UNSHOWABLE, result.traffic)
    shown, exact = canonical(seen), _as_told(answer) if result.keeps_order else canonical(answer)
    duration = claim.elapsed_ms()
    changes = {
        "state": State.SUCCEEDED.value,
        "result": shown.decode(),
        "result_kind": "content" if result.content else "value",
        "sealed_answer": None if shown == exact else seal_answer(claim.id, exact),
        "duration_ms": duration,
    }
    detail = {"attempt": claim.fence, "duration_ms": duration, "result_sha256": hashlib.sha256(shown).hexdigest()}
    entry = Entry(event="call.succeeded", actor=_actor(claim), detail=detail)
    if not _finish(claim, changes, entry, status="succeeded", traffic=result.traffic):
        return None
    if result.content:
        return ended(claim, State.SUCCEEDED, duration, content=tuple(answer))
    return ended(claim, State.SUCCEEDED, duration, value=answer)


def _as_told(answer: Any) -> bytes:
    """In the order in which the tool told it; a number that is too wide for that is told in ours."""
    try:
        return orjson.dumps(answer)
    except TypeError:
        return canonical(answer)


def fail(claim: Claim, failure: Failure, traffic: Traffic = NO_TRAFFIC) -> CallOutcome | None:
    """Record how the attempt went wrong, and that the call ends with it; None if it was taken over meanwhile."""
    told = _redacted(claim, failure)
    state = _ENDS.get(failure.code, State.FAILED)
    duration = claim.elapsed_ms()
    changes = {"state": state.value, "error": orjson.dumps(told.as_json()).decode(), "duration_ms": duration}
    detail = {"attempt": claim.fence, "duration_ms": duration, "code": told.code.wire, "message": told.message}
    entry = Entry(event=f"call.{state.value}", actor=_actor(claim), outcome="failed", detail=detail)
    if not _finish(claim, changes, entry, status=state.value, failure=told, traffic=traffic):
        return None
    return ended(claim, state, duration, failure=told)


def retry(claim: Claim, failure: Failure, delay: float, traffic: Traffic = NO_TRAFFIC) -> bool:
    """Record a failed attempt and put the call back in the queue for another one, `delay` seconds from now."""
    told = _redacted(claim, failure)
    changes: dict[str, Any] = {
        "state": State.QUEUED.value,
        "lease_until": None,
        "not_before": Later(delay),
        "resend_at": Later(delay + settings.PLACET_SWEEP),
    }
    detail = {"attempt": claim.fence, "code": told.code.wire, "message": told.message, "delay_s": round(delay, 3)}
    entry = Entry(event="call.retry_scheduled", actor=_actor(claim), outcome="failed", detail=detail)
    return _finish(claim, changes, entry, status="failed", failure=told, delay=delay, traffic=traffic)


def note(claim: Claim, event: str, detail: dict[str, Any]) -> None:
    """Something worth knowing happened while the tool ran; the call stays where it is."""
    entry = Entry(event=event, actor=_actor(claim), outcome="failed", detail=detail)

    def write() -> bool:
        with transaction.atomic():
            trail.append(claim.chain, entry, trace_id=claim.trace_id)
        return True

    insisting.insist(claim, write)


def cancel(call: Call, *, actor: str) -> Call:
    """Before a claim: it never runs. After it: a request, and the outcome is what the runtime reports."""
    if call.approval_id is not None:
        return _cancel_asked(call, call.approval_id, actor)
    return _cancel(call, actor)


def _cancel_asked(call: Call, approval: UUID, actor: str) -> Call:
    """The question to people is withdrawn with the call; its row is taken before the call's, as everywhere."""
    with transaction.atomic():
        if approvals.withdraw(approval, by=actor, reason="the call was cancelled"):
            _take_back(call, actor, _WAITING)
            return Call.objects.get(pk=call.pk)
    return _cancel(call, actor)


def _cancel(call: Call, actor: str) -> Call:
    cancellable = Call.objects.filter(pk=call.pk, state__in=_CANCELLABLE, cancel_requested=False)
    while not _take_back(call, actor, (State.QUEUED,)):
        is_told = cancelling.cancel(call, actor) or _ask_to_stop(call, actor) or waiting.cancel(call, actor)
        if is_told or not cancellable.exists():
            break  # it ended, or was asked before; else it moved between our looks
        call = Call.objects.get(pk=call.pk)
    return Call.objects.get(pk=call.pk)


def _take_back(call: Call, actor: str, states: tuple[State, ...]) -> bool:
    """Whether the call waited for its first attempt or for another one, and never has it now."""
    failure = Failure(code=ErrorCode.CANCELED, message=f"The call was cancelled before {_next_step(call)}")
    return _end_queued(call, State.CANCELLED, failure, "call.cancelled", actor, _so_far(call), states)


def _next_step(call: Call) -> str:
    return "another attempt" if call.fence else "it ran"


def _so_far(call: Call) -> dict[str, Any]:
    """What the trail says of a queued call's end, so that nobody takes it for one that never ran."""
    return {"attempts": call.fence} if call.fence else {}


def _ask_to_stop(call: Call, actor: str) -> bool:
    with transaction.atomic():
        running = Call.objects.filter(pk=call.pk, state=State.RUNNING, cancel_requested=False)
        if not running.update(cancel_requested=True):
            return False
        chain = trail.chain_of("call", str(call.pk), is_locked=True)
        trail.append(chain, Entry(event="call.cancel_requested", actor=actor), trace_id=call.trace_id)
        bell.ring(f"cancel:{call.pk}")
    return True


def _finish(
    claim: Claim,
    changes: dict[str, Any],
    entry: Entry,
    *,
    status: str,
    failure: Failure | None = None,
    delay: float | None = None,
    traffic: Traffic,
) -> bool:
    """Move a running call on, if this claim's fence still holds; a late write is recorded and changes nothing."""
    if changes["state"] != State.QUEUED:
        changes = ENDED | changes
    attempt = attempts.ended(claim, status, failure, delay, traffic)
    duration = changes.get("duration_ms") or claim.elapsed_ms()

    def write() -> bool:
        chain, events = trail.linked(claim.chain, entry, trace_id=claim.trace_id)
        if not moves.move(claim.id, claim.fence, changes, attempt, events, held=claim.held):
            return _was_written_before(claim, status)
        claim.chain.move_to(chain)
        return True

    is_written = insisting.insist(claim, write)
    breakers.learn(claim.tool, failure, is_hurried=claim.is_hurried)
    if not is_written:  # the attempt was given up, and that was told of
        return False
    telemetry.attempted(claim, failure)
    with contextlib.suppress(DatabaseError):  # it is recorded; whoever waits looks for itself soon
        bell.ring(claim.chain.id, is_local=claim.where.startswith("inline"))
    hooks.ended(claim, failure, duration)
    return True


def _was_written_before(claim: Claim, status: str) -> bool:
    """Whether a try of ours whose answer was lost had come through; if not, we came too late, which is recorded."""
    written = Attempt.objects.filter(call_id=claim.id, number=claim.fence, where=claim.where, status=status)
    with transaction.atomic():
        Call.objects.select_for_update().get(pk=claim.id)  # whoever moves the call writes on its chain
        if written.exists():
            return True
        logger.warning("attempt %s of call %s came back after it was taken over", claim.fence, claim.id)
        detail = {"attempt": claim.fence, "status": status, "where": claim.where}
        entry = Entry(event="call.stale_write", actor=_actor(claim), outcome="refused", detail=detail)
        trail.append(trail.chain_of("call", str(claim.id), is_locked=True), entry, trace_id=claim.trace_id)
    return False


def _end_queued(
    call: Call,
    state: State,
    failure: Failure,
    event: str,
    actor: str,
    detail: dict[str, Any],
    states: tuple[State, ...] = (State.QUEUED,),
) -> bool:
    with transaction.atomic():
        queued = Call.objects.filter(pk=call.pk, fence=call.fence, state__in=states)
        if not queued.update(**ENDED, state=state, error=orjson.dumps(failure.as_json()).decode()):
            return False
        chain = trail.chain_of("call", str(call.pk), is_locked=True)
        entry = Entry(event=event, actor=actor, outcome="refused", detail=detail)
        trail.append(chain, entry, trace_id=call.trace_id)
        bell.ring(str(call.pk))
    return True


def _redacted(claim: Claim, failure: Failure) -> Failure:
    """A failure's texts may quote the tool, and the tool may quote a secret: redact, then cut."""
    if failure is UNSHOWABLE:  # our own words, and the redactor that would look at them is the one that failed
        return failure
    redactor = claim.redactor
    details = redactor.for_people(dict(failure.details))
    return Failure(
        code=failure.code,
        message=clip(redactor.text(failure.message), MAX_TEXT),
        developer_message=clip(redactor.text(failure.developer_message), MAX_TEXT),
        can_retry=failure.can_retry,
        is_final=failure.is_final,
        retry_after_ms=failure.retry_after_ms,
        additional_prompt_content=clip(redactor.text(failure.additional_prompt_content), MAX_TEXT),
        parameter_errors=redactor.texts(failure.parameter_errors),
        missing_requirements=failure.missing_requirements,
        details=details if isinstance(details, dict) else {},  # a redactor that failed shows nothing
    )


def _actor(claim: Claim) -> str:
    return claim.actor or ("worker" if claim.where.startswith("worker") else "system")
