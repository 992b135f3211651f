"""A wasm module's reply: a value, or the failure it tells; whatever breaks its contract is said to do so."""

from collections.abc import Mapping
from typing import Any

from execution.errors import CallError, ErrorCode
from execution.runtimes.base import Invocation
from registry import strictjson

VERSION = "v1"
_DEFAULTS = {"error": (ErrorCode.EXECUTION_FAILED, True), "denied": (ErrorCode.PERMISSION_DENIED, False)}


def read(output: bytes, invocation: Invocation) -> Any:
    """The module's output, or CallError."""
    if not output.strip():
        raise _breach("The module wrote no reply")
    try:
        reply = strictjson.loads(output, max_bytes=invocation.max_answer)
    except strictjson.StrictJSONError as error:
        raise _breach(f"The module's reply is no JSON: {error.message}") from error
    if not isinstance(reply, Mapping) or reply.get("contract_version") != VERSION:
        raise _breach(f"The module's reply must be an object with contract_version {VERSION}")
    status, error = reply.get("status"), reply.get("error")
    if status == "ok" and error is None:
        return reply.get("output")
    if not isinstance(status, str) or status not in _DEFAULTS or not isinstance(error, Mapping | None):
        raise _breach("The module's reply must be ok without an error, or error or denied with one or none")
    raise _told(status, error or {}, invocation)


def _told(status: str, error: Mapping[str, Any], invocation: Invocation) -> CallError:
    """The failure in the module's words, and in ours where it has none."""
    code, can_retry = _DEFAULTS[status]
    details = error.get("details")
    details = dict(details) if isinstance(details, Mapping) else {}
    after = details.get("retry_after_ms")
    retryable = error.get("retryable")
    return CallError(
        _code(error.get("code"), code),
        _text(error.get("message")) or "The tool's module reported a failure",
        can_retry=retryable if isinstance(retryable, bool) else can_retry,
        retry_after_ms=after if type(after) is int and after >= 0 else None,
        details=details
        | {
            "isolation_mode": "wasm",
            "contract_version": VERSION,
            "module_status": status,
            "tool": invocation.tool.tool_id,
        },
    )


def _code(wire: Any, default: ErrorCode) -> ErrorCode:
    try:
        return ErrorCode.from_wire(wire)
    except (KeyError, TypeError):
        return default


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""


def _breach(why: str) -> CallError:
    return CallError(ErrorCode.RUNTIME_INVALID, "The tool's module broke its contract", developer_message=why)
