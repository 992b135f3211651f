"""Tool Contract v1 as a server speaks it: a request envelope to a CallRequest, an outcome to a response envelope."""

import math
from collections.abc import Mapping
from typing import Any

from execution.errors import ErrorCode, Failure
from execution.messages import NO_TERMS, Belief, CallContext, CallOutcome, CallRequest, Terms
from execution.protocols import shape
from execution.protocols.dialect import Refusal
from execution.protocols.tool_contract.version import VERSION, is_ours
from execution.retries import is_retryable
from policy.caller import Caller
from registry import strictjson
from registry.toolref import ToolRef

DOOR = "contract"
MAX_CAPABILITIES = 100
# Of these the contract has only one word: what was asked is not right.
INVALID = frozenset(
    {
        ErrorCode.INVALID_REQUEST,
        ErrorCode.UNSUPPORTED_VERSION,
        ErrorCode.CALL_ID_REUSED,
        ErrorCode.MISSING_REQUIREMENT,
        ErrorCode.INVALID_INPUT,
    }
)
_OWN_WORDS = {401: ErrorCode.UNAUTHENTICATED, 500: ErrorCode.INTERNAL, 503: ErrorCode.UNAVAILABLE}


class NotARequest(Refusal):
    """A refusal that knows which field is wrong, and the trace that the caller is in."""

    def __init__(self, field: str, message: str, **details: Any) -> None:
        super().__init__("invalid_input", message)
        self.details: dict[str, Any] = {"field": field, **details}
        self.trace: tuple[str, str] = ("", "")


def to_request(body: Any, caller: Caller) -> CallRequest:
    """A well-formed envelope as a request; the first thing that is wrong is told, in the contract's order."""
    if type(body) is not dict:
        raise NotARequest("", "The body must be a JSON object")
    trace = body["trace"] if type(body.get("trace")) is dict else {}
    try:
        if not is_ours(body.get("tool_contract_version")):
            field = "tool_contract_version"
            raise NotARequest(field, "This version of the contract is not supported", expected=VERSION)
        request_id = _text(body, "request_id", shape.MAX_ID)
        tool = _object(body, "tool")
        name = _text(tool, "name", shape.MAX_TOOL, "tool.")
        return CallRequest(
            caller=caller,
            door=DOOR,
            tool_text=name,
            tool_ref=ToolRef.parse(name) or ToolRef.parse_flat(name),
            arguments=_arguments(body),
            context=CallContext(terms=_terms(body)),
            call_id=request_id,
            trace_id=_text(_object(body, "trace"), "trace_id", shape.MAX_TRACE, "trace.", is_needed=False),
            span_id=_text(trace, "span_id", shape.MAX_TRACE, "trace.", is_needed=False),
            belief=_belief(tool),
        )
    except NotARequest as refusal:
        refusal.call_id = _echo(body.get("request_id"), shape.MAX_ID)
        refusal.trace = _echo(trace.get("trace_id"), shape.MAX_TRACE), _echo(trace.get("span_id"), shape.MAX_TRACE)
        raise


def from_outcome(outcome: CallOutcome) -> dict[str, Any]:
    """What came of a call, whichever way it came to it."""
    failure, duration = outcome.failure, math.ceil(outcome.duration_ms or 0)
    trace = outcome.trace_id, outcome.span_id
    if failure is None:
        told = _envelope("ok", outcome.call_id, trace, duration, outcome.attempt)
        told["output"] = _output(outcome)
    else:
        told = _envelope("denied" if failure.is_denial else "error", outcome.call_id, trace, duration, outcome.attempt)
        told["error"] = _error(word(failure.code), failure, {"tool": outcome.tool_id})
    if outcome.warnings:
        told["warnings"] = list(outcome.warnings)
    return told


def from_refusal(refusal: Refusal) -> dict[str, Any]:
    """A request that never became a call, in the same form."""
    code = _OWN_WORDS.get(refusal.status, ErrorCode.INVALID_INPUT)
    details, trace = {"problem": refusal.code}, ("", "")
    if isinstance(refusal, NotARequest):
        details, trace = refusal.details, refusal.trace
    failure = Failure(code=code, message=refusal.message, developer_message=refusal.developer_message, details=details)
    told = _envelope("error", refusal.call_id, trace)
    told["error"] = _error(code, failure, {})
    return told


def word(code: ErrorCode) -> ErrorCode:
    """The row of the table whose word the contract has for it."""
    return ErrorCode.INVALID_INPUT if code in INVALID else code


def _envelope(
    status: str, request_id: str, trace: tuple[str, str], duration_ms: int = 0, attempt: int = 1
) -> dict[str, Any]:
    return {
        "tool_contract_version": VERSION,
        "request_id": request_id,
        "status": status,
        "usage": {"duration_ms": duration_ms, "attempt": max(1, attempt)},
        "trace": {"trace_id": trace[0], "span_id": trace[1]},
    }


def _output(outcome: CallOutcome) -> dict[str, Any]:
    """An object is the output itself; anything else is its `result`."""
    if outcome.content:
        texts = [block["text"] for block in outcome.content if isinstance(block.get("text"), str)]
        return {"result": "\n".join(texts), "content": list(outcome.content)}
    if outcome.value is None:
        return {}
    return outcome.value if isinstance(outcome.value, dict) else {"result": outcome.value}


def _error(code: ErrorCode, failure: Failure, known: Mapping[str, Any]) -> dict[str, Any]:
    details: dict[str, Any] = {**known, **failure.details}
    if failure.parameter_errors:
        details.setdefault("field", "request_id" if failure.code is ErrorCode.CALL_ID_REUSED else "input")
        details["parameters"] = failure.by_parameter()
    if failure.missing_requirements and failure.code is not ErrorCode.APPROVAL_PENDING:
        details["missing_requirements"] = dict(failure.missing_requirements)
    if failure.developer_message:
        details["developer_message"] = failure.developer_message
    if failure.additional_prompt_content:
        details["additional_prompt_content"] = failure.additional_prompt_content
    if failure.retry_after_ms is not None:
        details["retry_after_ms"] = failure.retry_after_ms
    # A call that waits for people is no failure to repeat: it pauses, and runs by itself once they agree.
    is_pause = failure.code is ErrorCode.APPROVAL_PENDING
    return {
        "code": code.wire,
        "reason": code.value.reason,
        "retryable": is_retryable(failure) and not is_pause,
        "message": failure.message,
        "details": details,
    }


def _arguments(body: Mapping[str, Any]) -> dict[str, Any]:
    """`input_raw` wins if there is anything in it."""
    raw = body.get("input_raw")
    if raw is not None and type(raw) is not str:
        raise NotARequest("input_raw", "input_raw must be a string")
    if not raw or not raw.strip():
        return _object(body, "input")
    try:
        value = strictjson.loads(raw.encode())
    except strictjson.StrictJSONError as error:
        raise NotARequest("input_raw", "input_raw must be a JSON object", problem=error.code) from error
    if type(value) is not dict:
        raise NotARequest("input_raw", "input_raw must be a JSON object")
    return value


def _terms(body: Mapping[str, Any]) -> Terms:
    """What the caller asks for less of, and what it calls its errand; numbers that are no limit limit nothing."""
    runtime = _object(body, "runtime")
    timeout, attempts = _number(runtime, "timeout_ms"), _number(runtime, "max_attempts")
    if 0 < timeout < 1:
        raise NotARequest("runtime.timeout_ms", "runtime.timeout_ms must be at least 1, or 0 for the tool's own time")
    terms = Terms(
        timeout=timeout / 1000 if timeout > 0 else None,
        max_attempts=math.ceil(attempts) if attempts > 0 else None,
        task_id=_text(body, "task_id", shape.MAX_ID, is_needed=False),
        namespace=_text(body, "namespace", shape.MAX_ID, is_needed=False),
    )
    return terms if terms != NO_TERMS else NO_TERMS


def _number(runtime: Mapping[str, Any], name: str) -> float:
    value = runtime.get(name)
    if value is not None and type(value) not in (int, float):
        raise NotARequest(f"runtime.{name}", f"runtime.{name} must be a number")
    return float(min(value or 0, 10**9))


def _belief(tool: Mapping[str, Any]) -> Belief:
    named = tool.get("capabilities")
    if named is None:
        named = []
    if type(named) is not list or len(named) > MAX_CAPABILITIES or any(type(each) is not str for each in named):
        message = f"tool.capabilities must be a list of at most {MAX_CAPABILITIES} strings"
        raise NotARequest("tool.capabilities", message)
    capabilities = dict.fromkeys(each.strip().lower() for each in named)
    return Belief(
        operation=_text(tool, "operation", 64, "tool.", is_needed=False).lower() or "invoke",
        risk=_text(tool, "risk_level", 64, "tool.", is_needed=False).lower(),
        capabilities=tuple(each[: shape.MAX_ID] for each in capabilities if each),
    )


def _object(body: Mapping[str, Any], name: str) -> dict[str, Any]:
    """An object of the envelope; one that is left out, or null, is empty."""
    value = body.get(name)
    if value is None:
        return {}
    if type(value) is not dict:
        raise NotARequest(name, f"{name} must be a JSON object")
    return value


def _text(given: Mapping[str, Any], name: str, limit: int, where: str = "", *, is_needed: bool = True) -> str:
    """A text without the space around it; one that is left out, or null, is blank."""
    field, value = where + name, given.get(name)
    told = "" if value is None else value
    if type(told) is not str:
        raise NotARequest(field, f"{field} must be a string")
    told = told.strip()
    if is_needed and not told:
        raise NotARequest(field, f"{field} is required")
    if told:
        try:
            shape.text(told, field, limit=limit)
        except Refusal as refusal:
            raise NotARequest(field, refusal.message) from refusal
    return told


def _echo(value: Any, limit: int) -> str:
    """What can be told back of a request that is refused."""
    told = value.strip() if type(value) is str else ""
    return told if len(told) <= limit and told.isprintable() else ""
