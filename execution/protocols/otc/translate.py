"""The OTC draft on the wire: what OXP was before, with bare answers and a success flag for everything."""

import re
from typing import Any

from execution.errors import Failure
from execution.messages import CallOutcome, CallRequest
from execution.protocols import shape
from execution.protocols.dialect import Answer, Dialect, Refusal, seconds
from execution.protocols.otc import version
from execution.protocols.otc.version import SCHEMA
from execution.protocols.oxp.translate import tool_error
from policy.caller import Caller
from registry.toolref import ToolRef

KEYS = frozenset({"call_id", "trace_id", "tool_id", "input", "inputs", "context"})
PENDING_MS = 5_000  # when to ask again for a call that goes on, if nothing better is known
_TWO_NUMBERS = re.compile(r"[0-9]+\.[0-9]+")


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
            tool_ref=tool_ref(tool),
            arguments=_arguments(asked),
            context=shape.context(asked),
            call_id=call_id,
            trace_id=shape.trace_id(asked),
        )
    except Refusal as refusal:
        refusal.call_id = call_id or ""
        raise


def tool_ref(text: str) -> ToolRef | None:
    """The draft's versions: what OXP knows, and @latest, and @x.y for exactly x.y.0."""
    name, at, number = text.partition("@")
    if at and number == "latest":
        return ToolRef.parse(name)
    return ToolRef.parse(f"{text}.0" if _TWO_NUMBERS.fullmatch(number) else text)


def from_outcome(outcome: CallOutcome) -> Answer:
    """What came of a call; the draft has no other status than 200 for it."""
    failure = outcome.failure
    body: dict[str, Any] = {"$schema": SCHEMA, "call_id": outcome.call_id, "success": failure is None}
    headers: dict[str, str] = {}
    if outcome.duration_ms is not None:
        body["duration"] = outcome.duration_ms
    if failure is None:
        body["output"] = _output(outcome)
    else:
        error = _error(failure)
        body["output"] = {"error": error}
        if "retry_after_ms" in error:
            headers["Retry-After"] = seconds(error["retry_after_ms"])
    if outcome.warnings:
        body["warnings"] = list(outcome.warnings)
        headers["Deprecation"] = "true"
    return Answer(body=body, headers=headers)


def from_refusal(refusal: Refusal) -> Answer:
    """A request that never became a call, in the same bare form."""
    error: dict[str, Any] = {"message": refusal.message, "can_retry": refusal.status == 503, "code": refusal.code}
    if refusal.developer_message:
        error["developer_message"] = refusal.developer_message
    body: dict[str, Any] = {"$schema": SCHEMA, "success": False, "output": {"error": error}}
    if refusal.call_id:
        body["call_id"] = refusal.call_id
    return Answer(body=body, status=refusal.status, headers=refusal.headers)


def _arguments(asked: dict[str, Any]) -> dict[str, Any]:
    """The draft names them `inputs` in one chapter and `input` in another; whoever sends both must mean the same."""
    given = [shape.mapping(asked[name], name) for name in ("inputs", "input") if name in asked]
    if len(given) == 2 and given[0] != given[1]:
        raise shape.invalid("inputs and input are both given and differ")
    return given[0] if given else {}


def _output(outcome: CallOutcome) -> dict[str, Any]:
    if outcome.value is not None:
        return {"value": outcome.value}
    return {"value": list(outcome.content)} if outcome.content else {}


def _error(failure: Failure) -> dict[str, Any]:
    error = tool_error(failure)
    if failure.parameter_errors and not failure.developer_message:
        error["developer_message"] = "; ".join(
            f"Parameter '{name}': {message}" for name, message in failure.by_parameter().items()
        )
    if failure.code.http == 202:  # the call goes on: the same call_id asked again will tell
        error["can_retry"] = True
        error.setdefault("retry_after_ms", PENDING_MS)
    if links := _links(failure):
        error.setdefault("additional_prompt_content", links)
    return error


def _links(failure: Failure) -> str:
    """Where a person can give what is missing; the draft has only this field to say it."""
    wanted = failure.missing_requirements.get("authorization", ())
    return " ".join(f"{each.get('id')}: {each['url']}" for each in wanted if each.get("url"))


DIALECT = Dialect(name="otc", to_request=to_request, from_outcome=from_outcome, from_refusal=from_refusal)
