"""A wasm module's reply: a result, or the failure it tells; whatever breaks its contract is said to do so."""

from typing import Any

from execution import envelope
from execution.errors import CallError, ErrorCode
from execution.runtimes.base import Invocation, RunResult
from execution.traffic import Traffic
from registry import strictjson

VERSION = "v1"
_UNTOLD = {
    "error": {"code": "execution_failed", "message": "The tool's module reported a failure", "retryable": True},
    "denied": {"code": "permission_denied", "message": "The tool's module refused the call", "retryable": False},
}


def read(output: bytes, invocation: Invocation, traffic: Traffic) -> RunResult:
    """What the module returned, or CallError; what it leaves out of an error is filled in by its status."""
    reply = _reply(output)
    if not isinstance(reply, dict) or reply.get("contract_version") != VERSION:
        raise _breach(f"The module's reply must be an object with contract_version {VERSION}")
    status, error = reply.get("status"), reply.get("error")
    if status == "ok" and error is None:
        return envelope.result_of({"status": "ok", "output": reply.get("output")}, invocation, traffic=traffic)
    if not isinstance(status, str) or status not in _UNTOLD or not isinstance(error, dict | None):
        raise _breach("The module's reply must be ok without an error, or error or denied, with an object or without")
    told = _UNTOLD[status] | (error or {})
    given = told.get("details")
    told["details"] = (given if isinstance(given, dict) else {}) | {
        "isolation_mode": "wasm",
        "contract_version": VERSION,
        "module_status": status,
        "tool": invocation.tool.tool_id,
    }
    return envelope.result_of({"status": status, "error": told}, invocation, traffic=traffic)


def _reply(output: bytes) -> Any:
    if not output.strip():
        raise _breach("The module wrote no reply")
    try:
        return strictjson.loads(output, max_bytes=len(output))
    except strictjson.StrictJSONError as error:
        raise _breach(f"The module's reply is no JSON: {error.message}") from error


def _breach(why: str) -> CallError:
    return CallError(ErrorCode.RUNTIME_INVALID, "The tool's module broke its contract", developer_message=why)
