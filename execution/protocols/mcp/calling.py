"""Calling: `tools/call`, through the same road as every other door's calls."""

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from execution.errors import ErrorCode
from execution.messages import Authorship, CallContext, CallOutcome, CallRequest
from execution.models import State
from execution.pipeline.admit import admit
from execution.protocols import shape
from execution.protocols.dialect import Refusal
from execution.protocols.mcp import elicitation, paramheaders, progress, tasks, tasksupport
from execution.protocols.mcp.exchange import Era, Exchange, Stream
from execution.protocols.mcp.progress import Following
from execution.protocols.mcp.results import CALL_ID, call_result, refusal
from execution.protocols.mcp.rpcerrors import INVALID_PARAMS, RpcError
from execution.protocols.mcp.wording import CONTEXT
from policy.visibility import visible_toolkits
from registry import revision
from registry.ids import new_id
from registry.resolution import resolve
from registry.toolref import ToolRef
from registry.toolspec import ToolSpec

ARGUMENTS = "placet.dev/arguments"
QUICK = 1.0  # seconds in which most calls end; whoever waits longer is told that we are still here
PATIENCE = 55.0  # seconds a client is held in all
HANDOVER = 0.7  # and one that can be given a task instead, which frees the thread that would wait for it
LIVE_HANDOVER = 10.0  # the same, if it wants to hear of progress, which a task does not tell
_DOORS = {Era.PLAIN: "rpc", Era.LEGACY: "mcp", Era.MODERN: "mcp"}
_TRACEPARENT = re.compile(
    r"(?!ff)[0-9a-f]{2}-(?P<trace>(?!0{32})[0-9a-f]{32})-(?P<span>(?!0{16})[0-9a-f]{16})-[0-9a-f]{2}.*"
)
_REFUSED = (State.REJECTED, State.DENIED)
Answer = Mapping[str, Any]


def tools_call(exchange: Exchange) -> Answer | Stream:
    """The call's end, what to do until it comes, or a stream that ends with it."""
    request, tool = _read(exchange)
    if tool is None:
        return call_result(admit(request), exchange)
    paramheaders.check(exchange, tool)
    if exchange.era is Era.PLAIN:
        return call_result(admit(request), exchange)
    if (outcome := elicitation.resumed(exchange, request)) is not None:
        return _told(exchange, tool, outcome)
    if tasksupport.wants_task(exchange, tool):
        return _as_task(exchange, admit(replace(request, wait=0.0)))
    return _followed(exchange, tool, request)


def to_request(exchange: Exchange) -> CallRequest:
    """A well-formed request as the pipeline takes it; RpcError if it is none."""
    return _read(exchange)[0]


def _read(exchange: Exchange) -> tuple[CallRequest, ToolSpec | None]:
    """The request, and the tool where there is one of this name that the caller may know of."""
    params, meta = exchange.params, exchange.meta
    try:
        if "name" not in params:
            raise shape.invalid("name is missing")
        name = shape.text(params["name"], "name", limit=shape.MAX_TOOL)
        written = shape.mapping(params.get("arguments", {}), "arguments")
        brought = shape.mapping(meta.get(ARGUMENTS, {}), f'_meta["{ARGUMENTS}"]')
        call_id = shape.text(meta[CALL_ID], f'_meta["{CALL_ID}"]', limit=shape.MAX_ID) if CALL_ID in meta else None
        context = shape.context({"context": meta[CONTEXT]}) if CONTEXT in meta else CallContext()
    except Refusal as refusal:
        raise _invalid(exchange, refusal.message) from refusal
    trace, span = _trace(meta)
    ref, tool = _found(exchange, name)
    request = CallRequest(
        caller=exchange.caller,
        door=_DOORS[exchange.era],
        tool_text=name,
        tool_ref=ref,
        arguments={**written, **brought},
        context=context,
        call_id=call_id,
        trace_id=trace,
        span_id=span,
        authorship=Authorship(model=frozenset(written), program=frozenset(brought)),
        wait=PATIENCE,
    )
    return request, tool


def _found(exchange: Exchange, name: str) -> tuple[ToolRef | None, ToolSpec | None]:
    """Names count with their case here: what stands between may allow and forbid tools by how they are spelled."""
    ref = ToolRef.parse_flat(name)
    with revision.pinned():
        tool = None if ref is None else resolve(ref)
        if tool is None or tool.flat_name != name or tool.toolkit_id not in visible_toolkits(exchange.caller):
            return (ref if tool is None else None), None
    return ref, tool


def _followed(exchange: Exchange, tool: ToolSpec, request: CallRequest) -> Answer | Stream:
    """Quick calls are answered as they are; of others, and of those with news, the client hears as they go."""
    wanted = progress.wishes(exchange)
    can_be_task = tasksupport.may_become_task(exchange, tool)
    quick = HANDOVER if can_be_task else QUICK
    id = new_id()
    following = Following(exchange, id, wanted, tool.flat_name)
    is_handed_over = False
    try:
        outcome = admit(replace(request, id=id, wait=0.0 if wanted.is_live else quick))
        if not _goes_on(outcome) or (can_be_task and not wanted.is_live):
            said = following.heard()
            answer = _told(exchange, tool, outcome)
            return Stream(iter([*said, {"result": answer}])) if said else answer
        if outcome.id != id:  # the call_id was used before: this is that call
            following.listen_to(outcome.id)
        can_wait = LIVE_HANDOVER if can_be_task else PATIENCE
        messages = following.messages(outcome.id, can_wait, lambda ended: _last(exchange, tool, ended))
        next(messages)  # from here on its end is the end of the lines that it holds
        is_handed_over = True
        return Stream(messages)
    finally:
        if not is_handed_over:
            following.close()


def _last(exchange: Exchange, tool: ToolSpec, outcome: CallOutcome) -> Answer:
    try:
        return {"result": _told(exchange, tool, outcome)}
    except RpcError as error:
        return {"error": error.as_error()}


def _told(exchange: Exchange, tool: ToolSpec, outcome: CallOutcome) -> Answer:
    if outcome.failure is not None and outcome.failure.code is ErrorCode.APPROVAL_PENDING:
        return elicitation.asked(exchange, outcome)
    if _goes_on(outcome) and tasksupport.may_become_task(exchange, tool):
        return tasks.created(exchange, outcome)
    if _goes_on(outcome):
        elicitation.left_running(outcome)
    return call_result(outcome, exchange)


def _as_task(exchange: Exchange, outcome: CallOutcome) -> Answer:
    """A task, unless the call was refused at the door, where there is nothing to follow."""
    if outcome.state not in _REFUSED:
        return tasks.created(exchange, outcome)
    if exchange.era is Era.LEGACY:  # it asked for a task, and any other result would be taken for one
        raise refusal(outcome, exchange)
    return call_result(outcome, exchange)


def _goes_on(outcome: CallOutcome) -> bool:
    return outcome.failure is not None and outcome.failure.code is ErrorCode.STILL_RUNNING


def _trace(meta: Mapping[str, Any]) -> tuple[str, str]:
    """The W3C trace that the client is in; one that is malformed is none, as the W3C says."""
    given = meta.get("traceparent")
    match = _TRACEPARENT.fullmatch(given) if isinstance(given, str) and len(given) <= 128 else None
    return (match["trace"], match["span"]) if match else ("", "")


def _invalid(exchange: Exchange, detail: str) -> RpcError:
    message = "Invalid params" if exchange.era is Era.PLAIN else f"Invalid params: {detail}"
    return RpcError(INVALID_PARAMS, message, {"detail": detail})
