"""Break the glass: a person lets a call run that policy denied, or that nobody has decided."""

from collections.abc import Mapping
from typing import Any
from uuid import UUID

import orjson
from django.contrib.auth.models import User
from django.db import transaction

from audit import trail
from audit.canonical import canonical
from execution import dispatch, opening
from execution.errors import CallError
from execution.fingerprint import arguments_digest
from execution.messages import CallContext, CallRequest
from execution.models import Call, State
from execution.pipeline.steps import check_input, check_requirements
from policy import approvals, breakglass
from policy.breakglass import BreakGlassError
from policy.caller import Caller
from policy.decision import Decision, Effect, Finding
from policy.rulesets import live_rules
from registry.actors import actor
from registry.resolution import resolve
from registry.toolref import ToolRef
from registry.toolspec import ToolSpec


def run(id: UUID, *, by: User, reason: str, arguments: Mapping[str, Any] | None = None) -> Call:
    """The call that runs now: the undecided one itself, or a new one that repeats the denied one exactly.

    A denied call kept only the redacted copy of its input. Where that is not the whole of it, the exact
    arguments are given again, and their digest shows that they are the same.
    """
    breakglass.refuse_unfit(by, reason)
    call = Call.objects.select_related("agent", "tool__version__toolkit").get(pk=id)
    if call.state == State.AWAITING_APPROVAL:
        return _open_question(call, by, reason)
    if call.state == State.DENIED:
        return _repeat(call, by, reason, arguments)
    raise BreakGlassError(409, "not_waiting", f"Only a denied or undecided call can be let through; it is {call.state}")


def _open_question(call: Call, by: User, reason: str) -> Call:
    assert call.approval_id is not None
    assert call.tool is not None
    with transaction.atomic():
        try:
            approvals.break_open(call.approval_id, by=by, reason=reason)  # of two at once, one finds it decided
            breakglass.record(call.pk, agent=call.agent, tool=call.tool, by=by, reason=reason)
        except approvals.ApprovalError as error:
            raise BreakGlassError(error.status, error.code, error.message) from error
    return Call.objects.get(pk=call.pk)


def _repeat(call: Call, by: User, reason: str, arguments: Mapping[str, Any] | None) -> Call:
    ref = ToolRef.parse(call.tool_ref)
    tool = resolve(ref) if ref is not None else None
    if tool is None or call.tool is None or tool.id != call.tool_id:
        raise BreakGlassError(409, "tool_gone", f"{call.tool_ref} can no longer be called")
    request = _request(call, tool, arguments)
    try:
        check_input(tool, request.arguments)
        check_requirements(tool, request.context)
    except CallError as error:
        what = "The caller would have to bring its secrets again" if error.failure.missing_requirements else str(error)
        raise BreakGlassError(409, "cannot_repeat", what) from error
    with transaction.atomic():
        new = opening.open_queued(request, tool, _decision(by, reason))
        if new is None:
            raise BreakGlassError(409, "already_repeated", "The glass was broken for this call before")
        breakglass.record(new, agent=call.agent, tool=call.tool, by=by, reason=reason, instead_of=call.pk)
        transaction.on_commit(lambda: dispatch.send(new))
        detail = {"call": str(new), "reason": reason.strip()}
        chain = trail.chain_of("call", str(call.pk))
        trail.append(chain, trail.Entry(event="call.repeated", actor=actor(by), detail=detail), trace_id=call.trace_id)
    return Call.objects.get(pk=new)


def _request(call: Call, tool: ToolSpec, arguments: Mapping[str, Any] | None) -> CallRequest:
    given = orjson.loads(call.input) if arguments is None else dict(arguments)
    if arguments_digest(tool.digest, canonical(given)) != call.arguments_digest:
        raise BreakGlassError(
            409,
            "other_arguments",
            "The exact arguments were not kept; give them as `input`"
            if arguments is None
            else "These are not the arguments of the denied call",
        )
    agent = call.agent
    return CallRequest(
        caller=Caller(agent_id=agent.pk, name=agent.name, user_id=agent.user_id, credential="break_glass"),
        door="portal",
        tool_text=call.tool_ref,
        tool_ref=ToolRef.parse(call.tool_ref),
        arguments=given,
        context=CallContext(user_id=call.user_id),
        call_id=f"break-glass:{call.pk}",
        trace_id=call.trace_id,
    )


def _decision(by: User, reason: str) -> Decision:
    spoke = Finding(check="break_glass", effect=Effect.ALLOW, reason=f"{by} broke the glass: {reason.strip()}")
    return Decision(
        effect=Effect.ALLOW,
        rule=spoke.check,
        reason=spoke.reason,
        help="",
        revision=live_rules().number,
        findings=(spoke,),
    )
