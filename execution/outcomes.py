"""A call's row to what its caller is told."""

from typing import Any

import orjson

from execution.claim import unseal_answer
from execution.errors import ErrorCode, Failure
from execution.messages import CallOutcome
from execution.models import Call, State
from registry.toolspec import ToolSpec

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
        "warnings": tuple(orjson.loads(call.warnings)) if call.warnings else (),
    }
    if call.error:
        return CallOutcome(failure=Failure.from_json(orjson.loads(call.error)), **told)
    if call.is_open:
        return CallOutcome(failure=_goes_on(call), **told)
    answer = answer_of(call)
    if call.result_kind == "content":
        return CallOutcome(content=tuple(answer), **told)
    return CallOutcome(value=answer, **told)


def answer_of(call: Call) -> Any:
    """Exactly what the tool returned, as far as its caller may have it."""
    if call.sealed_answer is not None:
        return orjson.loads(unseal_answer(call.pk, call.sealed_answer))
    return orjson.loads(call.result) if call.result else None


def warnings_about(tool: ToolSpec) -> tuple[str, ...]:
    """What a caller should know although the call works."""
    return (f"{tool.tool_id} is deprecated; move to a newer version",) if tool.is_deprecated else ()


def _goes_on(call: Call) -> Failure:
    return Failure(
        code=ErrorCode.STILL_RUNNING,
        message=f"{_STILL.get(State(call.state), 'The call is open')}; ask again with the same call_id",
        can_retry=True,
        retry_after_ms=1000,
    )
