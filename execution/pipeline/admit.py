"""Chapter one, at the door: know the call, judge it, hand it over."""

from execution import dispatch, inline, opening
from execution.errors import CallError, ErrorCode, Failure
from execution.fingerprint import fingerprint
from execution.messages import CallOutcome, CallRequest
from execution.models import Call
from execution.outcomes import outcome_of
from execution.pipeline.perform import attempt
from execution.pipeline.steps import check_input, check_requirements, find_tool
from policy import engine
from policy.decision import Decision, Effect
from policy.question import Question
from registry import revision
from registry.toolspec import ToolSpec


def admit(request: CallRequest) -> CallOutcome:
    """The call's end, or that it goes on; its row and first events are committed before anything happens."""
    with revision.pinned():
        tool: ToolSpec | None = None
        decision: Decision | None = None
        try:
            tool = find_tool(request)
            check_input(tool, request.arguments)
            check_requirements(tool, request.context)
            decision = judge(request, tool)
        except CallError as error:
            return _refuse(request, tool, decision, error.failure)
        if decision.effect is not Effect.ALLOW:
            return _refuse(request, tool, decision, denial(decision))
        if inline.is_allowed(tool):
            return _run_here(request, tool, decision)
        return _queue(request, tool, decision)


def judge(request: CallRequest, tool: ToolSpec) -> Decision:
    question = Question(caller=request.caller, tool=tool, arguments=request.arguments, user_id=request.context.user_id)
    return engine.decide(question)


def denial(decision: Decision) -> Failure:
    return Failure(
        code=ErrorCode.PERMISSION_DENIED,
        message=decision.reason,
        developer_message=decision.help,
        details={"rule": decision.rule},
    )


def _run_here(request: CallRequest, tool: ToolSpec, decision: Decision) -> CallOutcome:
    claim = opening.open_inline(request, tool, decision)
    if claim is None:
        return _again(request)
    outcome = attempt(claim)
    if outcome is None:  # the queue will try it again, or took it over
        return dispatch.follow(claim.id, wait=request.wait)
    return outcome


def _queue(request: CallRequest, tool: ToolSpec, decision: Decision) -> CallOutcome:
    opened = opening.open_queued(request, tool, decision)
    if not opened.is_new:
        return _again(request)
    return dispatch.send_and_follow(opened.id, wait=request.wait)


def _refuse(request: CallRequest, tool: ToolSpec | None, decision: Decision | None, failure: Failure) -> CallOutcome:
    opened = opening.open_refused(request, tool, decision, failure)
    if opened.is_new:
        return outcome_of(Call.objects.get(pk=opened.id))
    return _again(request, failure)


def _again(request: CallRequest, refusal: Failure | None = None) -> CallOutcome:
    """A call_id seen before: the same request gets the answer it had, another one is refused."""
    first = Call.objects.get(agent_id=request.caller.agent_id, call_id=request.call_id)
    if first.fingerprint == fingerprint(request):
        return dispatch.follow(first.pk, wait=request.wait)
    failure = refusal or opening.reused(first.call_id)
    opening.record_reuse(request, failure)
    return CallOutcome(id=first.pk, call_id=first.call_id, state="rejected", tool_id=request.tool_text, failure=failure)
