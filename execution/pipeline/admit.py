"""Chapter one, at the door: know the call, judge it, hand it over."""

from contextlib import suppress
from dataclasses import replace
from uuid import UUID

from execution import asking, breakers, dispatch, inline, opening, telemetry
from execution.errors import CallError, ErrorCode, Failure
from execution.fingerprint import fingerprint
from execution.limiting import counted
from execution.messages import CallOutcome, CallRequest
from execution.models import Call, State
from execution.outcomes import outcome_of
from execution.pipeline.perform import attempt
from execution.pipeline.steps import check_authorship, check_belief, check_input, check_requirements, find_tool
from execution.sessions import offers
from policy import engine, shadowing
from policy.decision import Decision, Effect
from policy.question import Question
from registry import revision
from registry.ids import new_id
from registry.toolspec import ToolSpec


def admit(request: CallRequest) -> CallOutcome:
    """The call's end, or that it goes on; its row and first events are committed before anything happens."""
    with revision.pinned():
        tool: ToolSpec | None = None
        try:
            tool = find_tool(request)
            check_belief(tool, request.belief)
            check_authorship(tool, request.authorship)
            check_input(tool, request.arguments)
            check_requirements(tool, request.context)
        except CallError as error:
            revision.certain()
            return _told(request, tool, _refuse(request, tool, None, error.failure))
        return _told(request, tool, _judged(request, tool))


def _judged(request: CallRequest, tool: ToolSpec) -> CallOutcome:
    question = question_about(request, tool)
    decision = engine.decide(question)
    if decision.effect is not Effect.ALLOW or decision.limits is not None:
        revision.certain()
    try:
        match decision.effect:
            case Effect.DENY:
                return _refuse(request, tool, decision, denial(decision))
            case Effect.ASK:
                return _ask(request, question, decision)
            case Effect.ALLOW:
                return _allow(request, question, decision)
    except CallError as error:  # a limit was reached: nothing is kept, so that the same call can come again
        return _turn_away(request, tool, error.failure)


def _told(request: CallRequest, tool: ToolSpec | None, outcome: CallOutcome) -> CallOutcome:
    """With the trace of this request, which may ask once more for an answer that was given in another one."""
    telemetry.answered(request, tool, outcome)
    if not request.trace_id and not request.span_id:
        return outcome
    return replace(outcome, trace_id=request.trace_id, span_id=request.span_id)


def question_about(request: CallRequest, tool: ToolSpec) -> Question:
    return Question(caller=request.caller, tool=tool, arguments=request.arguments, user_id=request.context.user_id)


def denial(decision: Decision) -> Failure:
    return Failure(
        code=ErrorCode.PERMISSION_DENIED,
        message=decision.reason,
        developer_message=decision.help,
        details={"rule": decision.rule},
    )


def _allow(request: CallRequest, question: Question, decision: Decision) -> CallOutcome:
    tool = question.tool
    if (failure := breakers.refusal(tool)) is not None:
        revision.certain()
        return _again(request) if _is_known(request) else _turn_away(request, tool, failure)
    if not inline.is_allowed(tool):
        revision.certain()
        call = counted(question, decision, lambda: opening.open_queued(request, tool, decision))
        return _queued(request, question, decision, call)
    claim = counted(question, decision, lambda: opening.open_inline(request, tool, decision))
    if claim is None:
        revision.certain()
        return _again(request)
    shadowing.compare(question, decision, claim.id)
    outcome = attempt(claim)
    if outcome is None:  # the queue will try it again, or took it over
        return dispatch.follow(claim.id, wait=request.wait)
    return outcome


def _ask(request: CallRequest, question: Question, decision: Decision) -> CallOutcome:
    """Parked until people agree, unless one of them has agreed in advance."""
    with suppress(asking.NoGrant):
        call = counted(question, decision, lambda: asking.run_on_grant(request, question, decision))
        return _queued(request, question, decision, call)
    call = counted(question, decision, lambda: asking.park(request, question, decision))
    if call is None:
        return _again(request)
    shadowing.compare(question, decision, call)
    return outcome_of(Call.objects.get(pk=call))


def _queued(request: CallRequest, question: Question, decision: Decision, call: UUID | None) -> CallOutcome:
    if call is None:
        return _again(request)
    shadowing.compare(question, decision, call)
    toolkit = question.tool.toolkit_id if offers.is_pulled(question.tool) else None
    return dispatch.send_and_follow(call, wait=request.wait, toolkit=toolkit)


def _refuse(request: CallRequest, tool: ToolSpec | None, decision: Decision | None, failure: Failure) -> CallOutcome:
    call = opening.open_refused(request, tool, decision, failure)
    if call is None:
        return _again(request, failure)
    if tool is not None and decision is not None:
        shadowing.compare(question_about(request, tool), decision, call)
    return outcome_of(Call.objects.get(pk=call))


def _turn_away(request: CallRequest, tool: ToolSpec, failure: Failure) -> CallOutcome:
    opening.record_turned_away(request, tool, failure)
    nobody: UUID = new_id()
    return CallOutcome(
        id=nobody,
        call_id=request.call_id or str(nobody),
        state=State.REJECTED,
        tool_id=tool.tool_id,
        failure=failure,
    )


def _is_known(request: CallRequest) -> bool:
    return Call.objects.filter(agent_id=request.caller.agent_id, call_id=request.call_id).exists()


def _again(request: CallRequest, refusal: Failure | None = None) -> CallOutcome:
    """A call_id seen before: the same request gets the answer it had, another one is refused."""
    first = Call.objects.get(agent_id=request.caller.agent_id, call_id=request.call_id)
    if first.fingerprint == fingerprint(request):
        return dispatch.follow(first.pk, wait=request.wait)
    failure = refusal or opening.reused(first.call_id)
    opening.record_reuse(request, failure)
    return CallOutcome(id=first.pk, call_id=first.call_id, state="rejected", tool_id=request.tool_text, failure=failure)
