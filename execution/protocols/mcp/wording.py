"""Wording: a failed call in a text that says what is wrong and what to do next, for a model or a person to read."""

from collections.abc import Mapping
from typing import Any

import orjson

from execution.errors import ErrorCode, Failure
from execution.messages import CallOutcome

CONTEXT = "placet.dev/context"
_DENIED = frozenset({ErrorCode.PERMISSION_DENIED, ErrorCode.APPROVAL_DENIED})
_LATER = frozenset({ErrorCode.RATE_LIMITED, ErrorCode.UNAVAILABLE, ErrorCode.EXPIRED})
_NEXT = {
    ErrorCode.OUTCOME_UNKNOWN: "Whether it had its effect is not known; a person must look before it is called again.",
    ErrorCode.APPROVAL_TIMEOUT: "Nobody decided in time; a new call asks again.",
    ErrorCode.CANCELED: "It was cancelled; a new call starts anew.",
}


def told(outcome: CallOutcome, failure: Failure, example: Mapping[str, Any] | None) -> str:
    """What went wrong, then what would help."""
    lines = [failure.message]
    lines += [f"- {name}: {why}" for name, why in failure.by_parameter("arguments").items()]
    if example is not None:
        lines.append(f"An example of arguments that it takes: {orjson.dumps(example).decode()}")
    if failure.additional_prompt_content:
        lines.append(failure.additional_prompt_content)
    if step := _next_step(outcome, failure):
        lines.append(step)
    return "\n".join(lines)


def _next_step(outcome: CallOutcome, failure: Failure) -> str:
    code = failure.code
    if code in _DENIED:
        return failure.developer_message
    if code is ErrorCode.STILL_RUNNING:
        return (
            "To get its result, make exactly the same call again later; it does not run twice. "
            f'A program asks for it with _meta["placet.dev/call_id"] = "{outcome.call_id}".'
        )
    if code is ErrorCode.APPROVAL_PENDING:
        return f'Then make the same call again with _meta["placet.dev/call_id"] = "{outcome.call_id}".'
    if code is ErrorCode.MISSING_REQUIREMENT:
        return f'{failure.developer_message}: the program that calls brings it in _meta["{CONTEXT}"].'
    if code in _LATER or failure.can_retry:
        return f"It can be called again{_when(failure.retry_after_ms)}."
    return _NEXT.get(code, "")


def _when(milliseconds: int | None) -> str:
    if not milliseconds:
        return ""
    seconds = -(-milliseconds // 1000)
    return f" in {seconds} second{'' if seconds == 1 else 's'}"
