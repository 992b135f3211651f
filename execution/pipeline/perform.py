"""Chapter two, in the worker: judge again, run, verify, record."""

import logging
import traceback
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any, NamedTuple
from uuid import UUID

from django.db import DatabaseError

from audit.redaction import clip
from execution import (
    breakers,
    budgets,
    callbacks,
    calls,
    crowding,
    dispatch,
    hooks,
    inline,
    insisting,
    pins,
    pulse,
    retries,
    secrets,
    sessions,
    waiting,
)
from execution.asking import bound
from execution.claim import Claim, unseal_what_runs
from execution.credentials import Credentials
from execution.errors import CallError, ErrorCode, Failure
from execution.messages import CallContext, CallOutcome
from execution.models import Call, State
from execution.news import Speaker
from execution.pipeline.steps import check_output
from execution.returnaddress import ReturnAddress
from execution.runtimes import runtime_for
from execution.runtimes.base import DEFAULT_NAMESPACE, AnswersLater, Invocation, RunResult
from execution.sessions import offers
from execution.traceparent import traceparent
from execution.traffic import Traffic
from policy import acting, breakglass, engine, grants
from policy.caller import Caller
from policy.decision import Decision, Effect
from policy.models import Agent
from policy.question import Question
from policy.sealedbox import Unsealable
from registry import revision
from registry.resolution import resolve
from registry.toolref import ToolRef
from registry.toolspec import ToolSpec

logger = logging.getLogger(__name__)

MAX_LINE = 1_000
_NOT_LET_IN = {ErrorCode.AUTH_INVALID, ErrorCode.AUTH_EXPIRED}
LOOKS = 3  # at a call that moves while we look at it; after that the sweeper sends it once more
Ending = RunResult | CallError


class Cleared(NamedTuple):
    """A call that was judged again and may run: its tool, whose call it is, and what an approval must be bound to."""

    tool: ToolSpec
    agent: str
    digest: str


def perform(id: UUID) -> None:
    """Run a queued call, unless someone else did, it ended, or it may no longer run."""
    for _ in range(LOOKS):
        with revision.pinned():
            revision.current()  # first of all: it finds out whether the connection still stands
            call = calls.read(id)
            if call is None or call.state != State.QUEUED:
                return
            if call.dispatch == sessions.KIND:  # not ours to run: who serves its toolkit hears of it
                offers.announce_call(call)
                return
            if crowding.is_full(call):  # it comes again by itself, and this worker is free for other tools
                crowding.defer(call)
                return
            claim = _claimed(call)
            if claim is not None:
                attempt(claim)
                return


def _claimed(call: Call) -> Claim | None:
    """The call in our hands; None if it ended instead, or something moved between our look and our grip."""
    cleared = clear(call)
    return calls.claim(call, cleared.tool, cleared.agent, bound=cleared.digest) if cleared else None


def clear(call: Call) -> Cleared | None:
    """What whoever takes the queued call runs; None if it ended instead."""
    if call.cancel_requested:  # while it ran the time before
        calls.cancel(call, actor="worker")
        return None
    agent = acting.agent(call.agent_id)
    try:
        tool, digest = _judge_again(call, agent)
    except CallError as error:
        _deny(call, error.failure)
        return None
    return Cleared(tool, agent.name, digest)


def attempt(claim: Claim) -> CallOutcome | None:
    """One run of a claimed call, to its recorded end; None if the call goes on, in the queue or in other hands."""
    try:
        with pulse.kept(claim):
            result = _run(claim)
        check_output(claim.tool, result)
        return _ended(claim, calls.succeed(claim, result))
    except AnswersLater as later:
        _wait(claim, later.traffic)
        return None
    except CallError as error:
        return _ended(claim, _failed(claim, error))
    except Exception:
        logger.error("call %s met a bug", claim.id, exc_info=not claim.holds_secrets)
        calls.fail(claim, Failure(code=ErrorCode.INTERNAL, message="Placet failed to run the call", can_retry=False))
        if claim.holds_secrets:  # the exception may quote them, and whoever logs it does not know them
            logger.error("%s", claim.redactor.text(traceback.format_exc()))
            raise RuntimeError(f"call {claim.id} met a bug, told above") from None
        raise


def enter(claim: Claim) -> None:
    """Before the tool is asked: CallError if it is left alone for a while."""
    hooks.invoking(claim)
    breakers.enter(claim.tool)
    if claim.fence == 1:
        budgets.count(claim.tool)


def _run(claim: Claim) -> RunResult:
    enter(claim)
    runtime = runtime_for(claim.tool)

    def act(credentials: Credentials) -> RunResult:
        address = callbacks.expect(claim) if claim.tool.runtime.type == callbacks.KIND else None
        return runtime.run(invocation(claim, credentials, address, speaker))

    with Speaker(claim.id, is_local=claim.where.startswith("inline")) as speaker:
        return with_credentials(claim, act)


def with_credentials(claim: Claim, act: Callable[[Credentials], RunResult]) -> RunResult:
    """What the tool answers to credentials of this moment; a token that it no longer takes is replaced, once."""
    credentials = secrets.resolve(claim.tool, cancel=claim.cancel)
    claim.needles.update(credentials.needles)
    try:
        return act(credentials)
    except CallError as error:
        if error.code not in _NOT_LET_IN:
            raise
        fresh = secrets.rejected(claim.tool, credentials, cancel=claim.cancel)
        if fresh is None:
            raise
    claim.needles.update(fresh.needles)
    calls.note(claim, "call.auth_expired", {"attempt": claim.fence, "code": ErrorCode.AUTH_EXPIRED.wire})
    try:
        return act(fresh)
    except CallError as error:
        if error.code is ErrorCode.AUTH_EXPIRED:
            raise CallError(ErrorCode.AUTH_INVALID, str(error), traffic=error.traffic) from error
        raise


def _judge_again(call: Call, agent: Agent) -> tuple[ToolSpec, str]:
    """Hours may lie between the door and here: the tool, the agent and the policy are looked at once more.

    The tool, and the digest of all that an approval of this call would have to be bound to.
    """
    ref = ToolRef.parse(call.tool_ref)
    tool = resolve(ref) if ref is not None else None
    if tool is None or tool.id != call.tool_id:
        raise _withdrawn(call)
    if not agent.is_active:
        raise CallError(ErrorCode.PERMISSION_DENIED, f"The agent was disabled before {_next_step(call)}")
    if call.grant_id is not None and not grants.still_stands(call.grant_id):
        message = f"The grant that let the call in was taken back before {_next_step(call)}"
        raise CallError(ErrorCode.PERMISSION_DENIED, message)
    try:
        arguments, context = unseal_what_runs(call.pk, call.sealed or b"\0")
    except Unsealable as error:
        raise CallError(ErrorCode.INTERNAL, "What was to run can no longer be read") from error
    caller = Caller(agent_id=agent.pk, name=agent.name, user_id=agent.user_id, credential="")
    question = Question(caller=caller, tool=tool, arguments=arguments, user_id=context.user_id)
    decision = engine.decide(question)
    if decision.effect is not Effect.ALLOW and not _was_agreed_to(call, decision):
        raise CallError(
            ErrorCode.PERMISSION_DENIED,
            decision.reason if decision.effect is Effect.DENY else f"Policy now asks for a person: {decision.reason}",
            developer_message=decision.help,
            details={"rule": decision.rule},
        )
    return tool, _bound(call, question, context, decision.revision)


def _bound(call: Call, question: Question, context: CallContext, revision: int) -> str:
    """A broken glass lets the very same call run, under whichever policy; an answer counts only under its own."""
    if call.approval is None:
        return ""
    return bound(question, context, call.approval.revision if breakglass.allows(call.pk) else revision)


def _was_agreed_to(call: Call, decision: Decision) -> bool:
    """Whether people let this call run although policy does not by itself; a plain denial only a broken glass beats."""
    if decision.effect is Effect.ASK and (call.approval_id is not None or call.grant_id is not None):
        return True  # the claim looks at it
    return breakglass.allows(call.pk)


def _deny(call: Call, failure: Failure) -> None:
    if call.approval_id is not None:
        calls.deny_asked(call, call.approval_id, failure)
    else:
        calls.deny(call, failure)


def _next_step(call: Call) -> str:
    return "another attempt" if call.fence else "the call ran"


def _withdrawn(call: Call) -> CallError:
    return CallError(
        ErrorCode.PERMISSION_DENIED,
        f"The tool was withdrawn before {_next_step(call)}",
        developer_message=f"{call.tool_ref} is no longer available",
        details={"rule": "version_withdrawn"},
    )


def invocation(
    claim: Claim, credentials: Credentials, address: ReturnAddress | None = None, speaker: Speaker | None = None
) -> Invocation:
    """All that a runtime needs for an attempt in our hands."""
    return Invocation(
        tool=claim.tool,
        arguments=claim.arguments,
        call_id=claim.call_id,
        attempt=claim.fence,
        agent=claim.agent,
        user_id=claim.context.user_id,
        task_id=claim.context.terms.task_id,
        namespace=claim.context.terms.namespace or DEFAULT_NAMESPACE,
        trace_id=claim.trace_id,
        traceparent=traceparent(claim.id, claim.fence, claim.trace_id),
        secrets=claim.context.secrets,
        authorization=claim.context.authorization,
        credentials=credentials,
        timeout=claim.tool.runtime.timeout,
        is_hurried=claim.is_hurried,
        cancel=claim.cancel,
        on_news=lambda said: _tell(claim, said, speaker),
        return_address=address,
        pinned=lambda digest: pins.pinned(claim.tool, digest),
    )


def _tell(claim: Claim, said: Mapping[str, Any], speaker: Speaker | None) -> None:
    """A tool's log lines and progress, as one line of ours, and to whoever holds the line for it."""
    redactor = claim.redactor
    words = redactor.text(str(said.get("message") or ""))
    if speaker is not None:
        speaker.tell(said, clip(words, MAX_LINE))
    if said["kind"] == "progress":
        words = redactor.text(f"{said.get('done')} of {said.get('total')} ") + words
    logger.info("%s %s: %s", claim.tool.tool_id, claim.id, clip(words, MAX_LINE))


def _wait(claim: Claim, traffic: Traffic) -> None:
    """The tool answers later: the call is parked with all it needs, and this worker is free."""
    if insisting.insist(claim, lambda: waiting.begin(claim, traffic)):
        dispatch.look(callbacks.number_of(claim), delay=min(callbacks.POLL_EVERY, claim.tool.runtime.timeout))


def _ended(claim: Claim, outcome: CallOutcome | None) -> CallOutcome | None:
    """Nobody waits for a late answer to an attempt that is over; if that cannot be written now, the sweeper sees it."""
    if claim.tool.runtime.type == callbacks.KIND:
        with suppress(DatabaseError):
            callbacks.close(claim.id, claim.fence)
    return outcome


def retry_delay(claim: Claim, failure: Failure, *, is_sent: bool) -> float | None:
    """Seconds until another attempt, which is paid for; None if there must not be one, or it cannot be afforded."""
    delay = retries.next_delay(claim, failure, is_sent=is_sent)
    return delay if delay is not None and budgets.spend(claim.tool) else None


def conclude(claim: Claim, ending: Ending, *, may_retry: bool = True) -> float | None:
    """Record an attempt that a tool elsewhere made; the seconds until another one, which the caller sends."""
    if isinstance(ending, RunResult):
        calls.succeed(claim, ending)
        return None
    delay = retry_delay(claim, ending.failure, is_sent=ending.is_sent) if may_retry else None
    if delay is None:
        calls.fail(claim, ending.failure, ending.traffic)
    else:
        calls.retry(claim, ending.failure, delay, ending.traffic)
    return delay


def _failed(claim: Claim, error: CallError) -> CallOutcome | None:
    failure = error.failure
    if failure.code is ErrorCode.TIMEOUT and claim.where.startswith("inline") and not claim.is_hurried:
        inline.demote(claim.tool, f"ran longer than {claim.tool.runtime.timeout:g} s in call {claim.id}")
    delay = None if claim.cancel.is_set() else retry_delay(claim, failure, is_sent=error.is_sent)
    if delay is None:
        return calls.fail(claim, failure, error.traffic)
    if calls.retry(claim, failure, delay, error.traffic):
        dispatch.send(claim.id, delay=delay)
    return None
