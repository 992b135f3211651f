"""A call's row to what its caller is told."""

from typing import Any
from uuid import UUID

import orjson
from django.conf import settings

from execution.claim import Claim, unseal_answer
from execution.errors import ErrorCode, Failure
from execution.messages import CallOutcome
from execution.models import Call, Session, State
from execution.sessions import KIND
from registry.toolspec import ToolSpec

APPROVAL_RETRY = 5_000  # ms

_STILL = {
    State.QUEUED: "The call is queued",
    State.RUNNING: "The call is running",
    State.WAITING_CALLBACK: "The call waits for the tool's answer",
}


def outcome_of(call: Call) -> CallOutcome:
    """The stored answer of a call that ended, or that it goes on."""
    told: dict[str, Any] = {
        "id": call.pk,
        "call_id": call.call_id,
        "state": call.state,
        "tool_id": call.tool_ref,
        "duration_ms": call.duration_ms,
        "attempt": call.fence,
        "warnings": tuple(orjson.loads(call.warnings)) if call.warnings else (),
    }
    if call.error:
        return CallOutcome(failure=Failure.from_json(orjson.loads(call.error)), **told)
    if call.state == State.AWAITING_APPROVAL:
        return CallOutcome(failure=_waits_for_people(call), **told)
    if call.is_open:
        return CallOutcome(failure=_goes_on(call), **told)
    answer = answer_of(call)
    if call.result_kind == "content":
        return CallOutcome(content=tuple(answer), **told)
    return CallOutcome(value=answer, **told)


def ended(claim: Claim, state: State, duration_ms: float, **told: Any) -> CallOutcome:
    """The same of a call that ended in our hands, without a look at its row."""
    return CallOutcome(
        id=claim.id,
        call_id=claim.call_id,
        state=state,
        tool_id=claim.tool.tool_id,
        duration_ms=duration_ms,
        attempt=claim.fence,
        warnings=warnings_about(claim.tool),
        **told,
    )


def answer_of(call: Call) -> Any:
    """Exactly what the tool returned, as far as its caller may have it."""
    if call.sealed_answer is not None:
        return orjson.loads(unseal_answer(call.pk, call.sealed_answer))
    return orjson.loads(call.result) if call.result else None


def warnings_about(tool: ToolSpec) -> tuple[str, ...]:
    """What a caller should know although the call works."""
    if not tool.is_deprecated:
        return ()
    end = f" and may be withdrawn from {tool.sunset_on.isoformat()} on" if tool.sunset_on is not None else ""
    return (f"{tool.tool_id} is deprecated{end}; move to a newer version",)


def approval_url(approval: UUID) -> str:
    """Where people decide; the link opens a page and decides nothing."""
    return f"{settings.PLACET_URL}/approvals/{approval}/"


def _waits_for_people(call: Call) -> Failure:
    decision = orjson.loads(call.decision) if call.decision else {}
    assert call.approval_id is not None  # nobody waits for people without a question to them
    url = approval_url(call.approval_id)
    check = f"{settings.PLACET_URL}/api/calls/{call.pk}/"
    return Failure(
        code=ErrorCode.APPROVAL_PENDING,
        message=f"A person must agree first: {decision.get('reason', 'the call waits for an approval')}",
        developer_message="Ask again with the same call_id; the call runs by itself once it is approved",
        can_retry=True,
        retry_after_ms=APPROVAL_RETRY,
        additional_prompt_content=f"The call waits for a person's approval at {url}",
        missing_requirements={"authorization": [{"id": "approval", "url": url, "check_url": check}]},
        details={"rule": decision.get("rule", ""), "approval": str(call.approval_id), "approval_url": url},
    )


def _goes_on(call: Call) -> Failure:
    state = _STILL.get(State(call.state), "The call is open")
    if call.dispatch == KIND and call.state == State.QUEUED and not _is_served(call):
        state = f"The call is queued, and no session serves {call.tool_ref.partition('.')[0]} just now"
    return Failure(
        code=ErrorCode.STILL_RUNNING,
        message=f"{state}; ask again with the same call_id",
        can_retry=True,
        retry_after_ms=1000,
    )


def _is_served(call: Call) -> bool:
    return Session.objects.filter(toolkits__versions__tools=call.tool_id).exists()
