"""Tool Contract v1 as a caller speaks it: an invocation to a request, a response to a result or a CallError."""

from collections.abc import Mapping
from typing import Any, NoReturn

from audit.canonical import canonical
from execution.errors import CallError, ErrorCode
from execution.runtimes.base import Invocation, RunResult
from execution.traffic import NO_TRAFFIC, Traffic
from registry import strictjson
from registry.toolspec import ToolSpec

VERSION = "v1"
STATUSES = frozenset({"ok", "error", "denied"})
MAX_MESSAGE = 4_000
MAX_DETAILS = 10_000  # bytes
MAX_RETRY_AFTER = 86_400_000  # milliseconds

# What a tool may say in our own words. Others, such as that the caller is not authenticated, are not its to say.
_CANONICAL = {
    code.wire: code
    for code in (
        ErrorCode.INVALID_INPUT,
        ErrorCode.UNSUPPORTED_TOOL,
        ErrorCode.RUNTIME_INVALID,
        ErrorCode.ISOLATION_MISSING,
        ErrorCode.PERMISSION_DENIED,
        ErrorCode.SECRET_UNRESOLVED,
        ErrorCode.TIMEOUT,
        ErrorCode.CANCELED,
        ErrorCode.EXECUTION_FAILED,
        ErrorCode.AUTH_INVALID,
        ErrorCode.AUTH_FORBIDDEN,
        ErrorCode.AUTH_EXPIRED,
    )
}


def request_envelope(invocation: Invocation) -> dict[str, Any]:
    """The whole request: the caller's own ids, the real attempt, and of secrets only the names."""
    tool, credentials = invocation.tool, invocation.credentials
    retry = tool.runtime.retry
    envelope: dict[str, Any] = {
        "tool_contract_version": VERSION,
        "request_id": invocation.call_id,
        "namespace": invocation.namespace,
        "agent": invocation.agent,
        "attempt": invocation.attempt,
        "tool": {
            "name": tool.flat_name,
            "operation": "invoke",
            "capabilities": list(tool.capabilities),
            "risk_level": tool.risk.name.lower(),
        },
        "input": dict(invocation.arguments),
        "input_raw": "",
        "runtime": {
            "mode": tool.runtime.type,
            "timeout_ms": round(invocation.timeout * 1000),
            "max_attempts": retry.max_attempts,
            "backoff": "exponential",
            "max_backoff_ms": round(retry.max_backoff * 1000),
            "jitter": retry.jitter != "none",
        },
        "trace": trace_of(invocation),
    }
    if invocation.task_id:
        envelope["task_id"] = invocation.task_id
    if credentials.profile:
        named = {"profile": credentials.profile, "secret_ref": credentials.secret_ref}
        envelope["auth"] = {**named, "scopes": list(credentials.scopes)}
    return envelope


def trace_of(invocation: Invocation) -> dict[str, str]:
    """The caller's trace id, and our span where there is one."""
    _, trace, span, *_ = [*invocation.traceparent.split("-"), "", "", ""]
    return {"trace_id": invocation.trace_id or trace, "span_id": span}


def read_response(body: bytes, invocation: Invocation, *, traffic: Traffic = NO_TRAFFIC) -> RunResult:
    """The result that a response tells of, or CallError; what is not a response at all may be one the next time."""
    try:
        response = strictjson.loads(body, max_bytes=max(len(body), 1))
    except strictjson.StrictJSONError as error:
        raise CallError(
            ErrorCode.EXECUTION_FAILED,
            "The tool's answer is not a Tool Contract response",
            developer_message=error.message,
            can_retry=True,
            details={"tool": invocation.tool.tool_id},
            traffic=traffic,
        ) from error
    return result_of(response, invocation, traffic=traffic)


def is_response(value: Any) -> bool:
    """Whether a JSON value presents itself as a response: an object with one of the three statuses."""
    return isinstance(value, dict) and isinstance(value.get("status"), str) and value["status"] in STATUSES


def result_of(response: Any, invocation: Invocation, *, traffic: Traffic = NO_TRAFFIC) -> RunResult:
    """The same for a response that was read already."""
    if not isinstance(response, dict):
        _refuse("it is not an object", traffic)
    version = response.get("tool_contract_version")
    if version is not None and (not isinstance(version, str) or version.strip().lower() not in ("", VERSION)):
        _refuse("it speaks another version of the contract", traffic)
    if response.get("request_id") not in (None, "", invocation.call_id):
        _refuse("it answers another request", traffic)
    status, error = response.get("status"), response.get("error")
    if not isinstance(status, str) or status not in STATUSES:
        _refuse("it has no status that the contract knows", traffic)
    if status != "ok":
        raise _failure(status, error, traffic)
    if error is not None:
        _refuse("it says ok and tells of an error", traffic)
    return RunResult(value=value_of(response.get("output"), invocation.tool), traffic=traffic)


def value_of(output: Any, tool: ToolSpec) -> Any:
    """What the tool returned; a lone `result` is the value itself, unless the tool declares an object with one."""
    schema = tool.output_schema
    if output == {} and schema is None:
        return None
    if not isinstance(output, dict) or output.keys() != {"result"}:
        return output
    declared = schema.get("properties") if isinstance(schema, dict) else None
    return output if isinstance(declared, dict) and "result" in declared else output["result"]


def _failure(status: str, error: Any, traffic: Traffic) -> CallError:
    """What the tool says about its failure, in the words of our table where it uses them."""
    if not isinstance(error, dict):
        details = {"status": status} if status == "denied" else {}
        message = "The tool failed without saying why: its response has no error"
        return CallError(ErrorCode.EXECUTION_FAILED, message, details=details, traffic=traffic)
    told, reason = _text(error, "code"), _text(error, "reason")
    code = _CANONICAL.get(told, ErrorCode.EXECUTION_FAILED)
    given = error.get("details")
    details = dict(given) if isinstance(given, dict) and len(canonical(given)) <= MAX_DETAILS else {}
    asked = given.get("retry_after_ms") if isinstance(given, dict) else None
    if told and told != code.wire:
        details["code"] = told
    if reason and reason != code.value.reason:
        details["reason"] = reason
    if status == "denied":
        details["status"] = status
    return CallError(
        code,
        _text(error, "message", MAX_MESSAGE) or "The tool failed without saying why",
        can_retry=error.get("retryable") is True,
        is_final=code.value.retryable and error.get("retryable") is not True,
        retry_after_ms=_milliseconds(asked),
        details=details,
        traffic=traffic,
    )


def _text(error: Mapping[str, Any], name: str, most: int = 100) -> str:
    """A text of the error; one too long to be a word is left out, a message is cut where it is redacted."""
    value = error.get(name)
    if not isinstance(value, str):
        return ""
    return value.strip() if name == "message" or len(value) <= most else ""


def _milliseconds(value: Any) -> int | None:
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return round(value) if is_number and 0 <= value <= MAX_RETRY_AFTER else None


def _refuse(why: str, traffic: Traffic) -> NoReturn:
    raise CallError(
        ErrorCode.EXECUTION_FAILED,
        "The tool's answer breaks the Tool Contract",
        developer_message=f"The response is refused: {why}",
        traffic=traffic,
    )
