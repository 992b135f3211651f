"""OXP 1.0 on the wire: an envelope to a CallRequest, an outcome or a refusal to an answer."""

from typing import Any

from execution.errors import ErrorCode, Failure, Stage
from execution.messages import CallOutcome, CallRequest
from execution.protocols import shape
from execution.protocols.dialect import Answer, Dialect, Refusal, seconds
from execution.protocols.oxp import version
from execution.protocols.oxp.version import SCHEMA
from policy.caller import Caller
from registry.toolref import ToolRef

KEYS = frozenset({"call_id", "trace_id", "tool_id", "input", "context"})
STATUS = {Stage.BEFORE: 400, Stage.INPUT: 422, Stage.TOOL: 200}
OWN_STATUS = frozenset({401, 500})  # bad credentials, and a bug of ours: never one of the three kinds


def to_request(body: Any, caller: Caller) -> CallRequest:
    """A well-formed envelope as a request; the tool's name need not mean anything yet."""
    envelope = shape.mapping(body, "The body")
    version.check(envelope)
    if "request" not in envelope:
        raise shape.invalid("request is missing")
    asked = shape.mapping(envelope["request"], "request")
    call_id = shape.call_id(asked)
    try:
        shape.only(asked, KEYS, "request")
        tool = shape.tool_id(asked)
        return CallRequest(
            caller=caller,
            door=DIALECT.name,
            tool_text=tool,
            tool_ref=ToolRef.parse(tool),
            arguments=shape.mapping(asked.get("input", {}), "input"),
            context=shape.context(asked),
            call_id=call_id,
            trace_id=shape.trace_id(asked),
        )
    except Refusal as refusal:
        refusal.call_id = call_id or ""
        raise


def from_outcome(outcome: CallOutcome) -> Answer:
    """What came of a call: a result, or one of the three kinds of error."""
    headers: dict[str, str] = {"Deprecation": "true"} if outcome.warnings else {}
    failure, status = outcome.failure, 200
    body: dict[str, Any] = {"$schema": SCHEMA}
    if failure is None or failure.code.stage is Stage.TOOL:
        body["result"] = _result(outcome, failure)
    else:
        http = failure.code.http
        status = http if http in OWN_STATUS else STATUS[failure.code.stage]
        body |= _error(outcome, failure)
        if failure.retry_after_ms is not None:
            headers["Retry-After"] = seconds(failure.retry_after_ms)
    if outcome.warnings:
        body["warnings"] = list(outcome.warnings)
    return Answer(body=body, status=status, headers=headers)


def from_refusal(refusal: Refusal) -> Answer:
    """A request that never became a call, as a ServerErrorResponse."""
    body: dict[str, Any] = {"$schema": SCHEMA, "message": refusal.message, "code": refusal.code}
    if refusal.developer_message:
        body["developer_message"] = refusal.developer_message
    if refusal.call_id:
        body["call_id"] = refusal.call_id
    # The specification counts a server that is away among the errors before a call, and those are 400.
    status = 400 if refusal.status == 503 else refusal.status
    return Answer(body=body, status=status, headers=refusal.headers)


def _result(outcome: CallOutcome, failure: Failure | None) -> dict[str, Any]:
    result: dict[str, Any] = {"call_id": outcome.call_id, "success": failure is None}
    if outcome.duration_ms is not None:
        result["duration"] = outcome.duration_ms
    if failure is None:
        result["value"] = list(outcome.content) if outcome.value is None and outcome.content else outcome.value
    else:
        result["error"] = tool_error(failure)
    return result


def tool_error(failure: Failure) -> dict[str, Any]:
    """The error object that a tool's failure becomes; what is empty is left out."""
    error: dict[str, Any] = {"message": failure.message, "can_retry": failure.can_retry}
    if failure.code is not ErrorCode.EXECUTION_FAILED:  # the tool's own word, unless it never got to say one
        error["code"] = failure.code.wire
    if failure.developer_message:
        error["developer_message"] = failure.developer_message
    if failure.additional_prompt_content:
        error["additional_prompt_content"] = failure.additional_prompt_content
    if failure.retry_after_ms is not None:
        error["retry_after_ms"] = failure.retry_after_ms
    return error


def _error(outcome: CallOutcome, failure: Failure) -> dict[str, Any]:
    """A server or validation error; both objects are open, so the code and the call's id go with them."""
    error: dict[str, Any] = {"message": failure.message, "code": failure.code.wire, "call_id": outcome.call_id}
    if failure.developer_message:
        error["developer_message"] = failure.developer_message
    if failure.parameter_errors:
        error["parameter_errors"] = failure.by_parameter()
    if failure.missing_requirements:
        error["missing_requirements"] = dict(failure.missing_requirements)
    if failure.additional_prompt_content:
        error["additional_prompt_content"] = failure.additional_prompt_content
    return error


DIALECT = Dialect(name="oxp", to_request=to_request, from_outcome=from_outcome, from_refusal=from_refusal)
