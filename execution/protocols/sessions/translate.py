"""The session API's words: bodies to what they mean, sessions and requests to JSON. Pure, without a query."""

import math
import re
from collections.abc import Mapping
from datetime import datetime
from typing import Any

from django.conf import settings

from execution import envelope
from execution.claim import unseal_what_runs
from execution.errors import CallError, ErrorCode
from execution.messages import CallContext
from execution.models import Call, Pull, Session, State
from execution.pipeline.perform import Ending
from execution.protocols import shape
from execution.protocols.dialect import Answer, Dialect, Refusal
from execution.runtimes.base import RunResult
from execution.traceparent import traceparent
from registry.toolspec import ToolSpec

DOOR = "session"
MAX_SERVES = 100
MAX_ERROR = 100_000  # characters of an error's text; what is kept is cut where it is redacted
MAX_WAIT = 30.0
MAX_LIMIT = 50
MAX_RETRY_AFTER = 86_400_000
STATES = {"PENDING": State.QUEUED, "PROCESSING": State.RUNNING, "COMPLETE": State.SUCCEEDED, "ERROR": State.FAILED}
_NUMBER = re.compile(r"[0-9]{1,9}(\.[0-9]{1,6})?", re.ASCII)


def refused(refusal: Refusal) -> Answer:
    body = {"error": {"code": refusal.code, "message": refusal.message}}
    return Answer(body=body, status=refusal.status, headers=refusal.headers)


def _no_calls(*_: Any) -> Any:
    raise Refusal("malformed", "No calls are made here")


DIALECT = Dialect(name=DOOR, to_request=_no_calls, from_outcome=_no_calls, from_refusal=refused)


def serves(body: Any) -> list[str]:
    """The toolkits that a new session wants to serve, each once."""
    asked = shape.mapping(body, "The body")
    shape.only(asked, frozenset({"serves"}), "The body")
    names = asked.get("serves")
    if type(names) is not list or not 1 <= len(names) <= MAX_SERVES:
        raise shape.invalid(f"serves must be a list of 1 to {MAX_SERVES} names of toolkits")
    found = [shape.text(name, f"serves[{number}]", limit=64) for number, name in enumerate(names)]
    return list({name.lower(): name for name in found}.values())


def is_alive(body: Any) -> bool:
    """Whether a heartbeat says PROCESSING; False for ERROR, everything else is refused."""
    asked = shape.mapping(body, "The body")
    match asked.get("state"):
        case "PROCESSING":
            beat = asked.get("heartbeat")
            if type(beat) is not int and not (type(beat) is float and math.isfinite(beat)):
                raise shape.invalid("heartbeat must be a number, such as the milliseconds of your clock")
            return True
        case "ERROR":
            return False
        case "COMPLETE":
            raise shape.invalid("A result is sent to /v1/tools/response/{session}/{request}")
    raise shape.invalid('state must be "PROCESSING" or "ERROR"')


def failure(body: Mapping[str, Any]) -> CallError:
    """What the worker says about its failure; whether another attempt may cure it is for the worker to say."""
    text = body.get("error")
    if type(text) is not str or not text.strip() or len(text) > MAX_ERROR:
        raise shape.invalid(f"error must be a text of 1 to {MAX_ERROR} characters")
    pause = body.get("retryAfterMs")
    if pause is not None and (type(pause) is not int or not 0 <= pause <= MAX_RETRY_AFTER):
        raise shape.invalid("retryAfterMs must be a whole number of milliseconds, at most a day")
    if type(body.get("canRetry", False)) is not bool:
        raise shape.invalid("canRetry must be true or false")
    more = {name: body.get(key, "") for key, name in _TEXTS.items()}
    for key, name in _TEXTS.items():
        if type(more[name]) is not str or len(more[name]) > MAX_ERROR:
            raise shape.invalid(f"{key} must be a text of at most {MAX_ERROR} characters")
    return CallError(
        ErrorCode.EXECUTION_FAILED, text, can_retry=body.get("canRetry", False), retry_after_ms=pause, **more
    )


_TEXTS = {"developerMessage": "developer_message", "additionalPromptContent": "additional_prompt_content"}


def response(body: Any) -> dict[str, Any]:
    """The fields of a response besides its state, in their order."""
    told = shape.mapping(shape.mapping(body, "The body").get("response"), "response")
    if told.get("state") != "COMPLETE":
        raise shape.invalid('response.state must be "COMPLETE"; a failure is told by a heartbeat of the state "ERROR"')
    return {name: value for name, value in told.items() if name != "state"}


def result(fields: dict[str, Any], tool: ToolSpec) -> Ending:
    return RunResult(value=envelope.value_of(fields, tool), keeps_order=True)


def number(text: str | None, name: str, default: float, *, least: float, most: float) -> float:
    """A number of the query string; beyond its bounds is the bound."""
    if text is None:
        return default
    if not _NUMBER.fullmatch(text):
        raise shape.invalid(f"{name} must be a number")
    return min(max(float(text), least), most)


def session_json(session: Session) -> dict[str, Any]:
    return {
        "sessionId": session.pk,
        "createdAt": milliseconds(session.created_at),
        "serves": sorted(toolkit.name for toolkit in session.toolkits.all()),
        "lease": settings.PLACET_LEASE,
        "idleTimeout": settings.PLACET_SESSION_IDLE,
    }


def pending_json(call: Call, tool: ToolSpec) -> dict[str, Any]:
    """A request to be had: all that a worker needs to decide whether to take it, and no secret."""
    arguments, _ = unseal_what_runs(call.pk, call.sealed or b"\0")
    told = _request(call, "PENDING", call.fence + 1, tool, arguments)
    return told | {"deadline": milliseconds(call.deadline) if call.deadline else None}


def processing_json(call: Call, pull: Pull, tool: ToolSpec) -> dict[str, Any]:
    """A request that the session holds, with what its caller brought of what the tool requires."""
    arguments, context = unseal_what_runs(call.pk, call.sealed or b"\0")
    told = _request(call, "PROCESSING", call.fence, tool, arguments)
    return told | {"deadline": milliseconds(pull.deadline), "context": _brought(context, tool)}


def ended_json(call: Call, state: str) -> dict[str, Any]:
    """A request that the session ended; what ran is no longer kept."""
    toolkit, _, rest = call.tool_ref.partition(".")
    ended = milliseconds(call.finished_at) if call.finished_at else None
    return {
        "requestId": str(call.pk),
        "callId": call.call_id,
        "state": state,
        "toolkit": toolkit,
        "tool": rest.partition("@")[0],
        "toolId": call.tool_ref,
        "attempt": call.fence,
        "finishedAt": ended,
    }


def _request(call: Call, state: str, attempt: int, tool: ToolSpec, arguments: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "requestId": str(call.pk),
        "callId": call.call_id,
        "state": state,
        "toolkit": tool.toolkit,
        "tool": tool.name,
        "toolId": tool.tool_id,
        "arguments": arguments,
        "attempt": attempt,
        "idempotencyKey": str(call.pk),  # the same for every attempt, and unlike call_id no other agent's
        "timeout": tool.runtime.timeout,
        "agent": call.agent.name,
        "traceparent": traceparent(call.pk, attempt, call.trace_id),
        "requires": {name: _ids(tool, name) for name in ("secrets", "authorization")}
        | {"userId": bool(tool.requirements.get("user_id"))},
    }


def _ids(tool: ToolSpec, name: str) -> list[str]:
    return [need["id"] for need in tool.requirements.get(name, ())]


def _brought(context: CallContext, tool: ToolSpec) -> dict[str, Any]:
    """What a tool does not require is not for whoever serves it."""
    given = {"secrets": context.secrets, "authorization": context.authorization}
    brought: dict[str, Any] = {
        name: {id: values[id] for id in _ids(tool, name) if id in values} for name, values in given.items()
    }
    return brought | {"userId": context.user_id if tool.requirements.get("user_id") else ""}


def milliseconds(moment: datetime) -> int:
    return round(moment.timestamp() * 1000)
