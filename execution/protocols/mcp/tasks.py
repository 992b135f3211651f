"""Tasks: `tasks/*` of both eras. A task is a call of the agent that asks, made at this door."""

import binascii
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Mapping
from dataclasses import replace
from typing import Any
from uuid import UUID

from django.db.models import Q, QuerySet

from execution import calls
from execution.errors import ErrorCode, Failure
from execution.messages import CallOutcome
from execution.models import Call, Elicitation, State
from execution.outcomes import outcome_of
from execution.protocols.mcp import approvalpage, elicitations, tasksupport
from execution.protocols.mcp.blocking import until_final
from execution.protocols.mcp.exchange import Era, Exchange, Stream
from execution.protocols.mcp.results import call_result
from execution.protocols.mcp.rpcerrors import INVALID_PARAMS, RpcError
from execution.protocols.mcp.taskstatus import is_final, legacy_status, status_message, task
from execution.protocols.mcp.tasksupport import wants_task
from policy.caller import Caller

__all__ = ["created", "tasks_cancel", "tasks_get", "tasks_list", "tasks_result", "tasks_update", "wants_task"]

DOOR = "mcp"
PAGE = 50
IMMEDIATE = "io.modelcontextprotocol/model-immediate-response"
_STOPPING = Failure(code=ErrorCode.CANCELED, message="The task was cancelled; its tool was told to stop")
_NOT_TASKS = Q(state=State.REJECTED) | Q(state=State.DENIED, approval=None)  # refused at the door: nothing to follow


def created(exchange: Exchange, outcome: CallOutcome) -> Mapping[str, Any]:
    """CreateTaskResult for a call whose row is written, and which goes on whoever asks for it."""
    call = Call.objects.select_related("approval").get(pk=outcome.id)
    if exchange.era is Era.MODERN:
        return {"resultType": "task", **task(call, exchange, _modern_status(call, exchange))}
    told: dict[str, Any] = {"task": task(call, exchange, "working")}  # as every task of this revision begins
    return {**told, "_meta": {IMMEDIATE: message}} if (message := status_message(call)) else told


def tasks_get(exchange: Exchange) -> Mapping[str, Any]:
    """The task as it is; the extension's has its result, its error or its open question inside."""
    tasksupport.require_declared(exchange)
    call = _found(exchange)
    return detailed(call, exchange) if exchange.era is Era.MODERN else task(call, exchange, legacy_status(call))


def tasks_update(exchange: Exchange) -> Mapping[str, Any]:
    """An answer to the task's question; one that nobody asked, or that was answered, is passed over."""
    tasksupport.require_declared(exchange)
    if "inputResponses" not in exchange.params:
        raise RpcError(INVALID_PARAMS, "Invalid params: inputResponses is missing")
    call = _found(exchange)
    action = approvalpage.action_in(approvalpage.responses(exchange.params))
    is_first = bool(action) and call.state == State.AWAITING_APPROVAL and elicitations.answer(call, action)
    if is_first and action == Elicitation.Action.DECLINE:
        approvalpage.take_back(call, exchange)
    return {}


def tasks_cancel(exchange: Exchange) -> Mapping[str, Any]:
    """Before it runs, it never will; a running tool is told to stop."""
    tasksupport.require_declared(exchange)
    call = _found(exchange)
    if exchange.era is Era.LEGACY and is_final(call):
        raise RpcError(INVALID_PARAMS, f"Invalid params: the task is {legacy_status(call)} already")
    if call.is_open:
        calls.cancel(call, actor=f"agent:{exchange.caller.name}")
        call = _found(exchange)
    return {} if exchange.era is Era.MODERN else task(call, exchange, legacy_status(call))


def tasks_result(exchange: Exchange) -> Mapping[str, Any] | Stream:
    """What the call itself would have answered, as soon as there is such an answer."""
    call = _found(exchange)
    return _result(call, exchange) if is_final(call) else Stream(until_final(exchange, call, _result))


def tasks_list(exchange: Exchange) -> Mapping[str, Any]:
    """The agent's tasks, newest first, a page at a time."""
    found = of(exchange.caller)
    if (before := _place(exchange.params.get("cursor", ""))) is not None:
        found = found.filter(pk__lt=before)
    page = list(found.defer("sealed", "sealed_answer", "input", "result")[: PAGE + 1])
    told: dict[str, Any] = {"tasks": [task(call, exchange, legacy_status(call)) for call in page[:PAGE]]}
    return {**told, "nextCursor": _cursor(page[PAGE - 1].pk)} if len(page) > PAGE else told


def detailed(call: Call, exchange: Exchange) -> dict[str, Any]:
    """The extension's task, with what its status calls for."""
    told = task(call, exchange, _modern_status(call, exchange))
    if told["status"] == "input_required":
        told["inputRequests"] = approvalpage.input_requests(call)
    elif told["status"] == "completed":
        try:
            told["result"] = dict(call_result(outcome_of(call), exchange))
        except RpcError as error:  # what would have been an error of the request itself
            told |= {"status": "failed", "error": error.as_error()}
    return told


def _modern_status(call: Call, exchange: Exchange) -> str:
    """Completed is everything that has a result, a tool's error too; a question is open until it is answered."""
    if call.state == State.CANCELLED:
        return "cancelled"
    if not call.is_open:
        return "completed"
    if call.state != State.AWAITING_APPROVAL or not approvalpage.can_be_opened(exchange):
        return "working"
    return "working" if elicitations.action_of(call.pk) else "input_required"


def _result(call: Call, exchange: Exchange) -> dict[str, Any]:
    outcome = outcome_of(call)
    if call.is_open:  # the task is over, for it was cancelled; its tool may not have heard of it yet
        outcome = replace(outcome, failure=_STOPPING)
    told = dict(call_result(outcome, exchange))
    related = {"io.modelcontextprotocol/related-task": {"taskId": str(call.pk)}}
    return {**told, "_meta": {**told.get("_meta", {}), **related}}


def _found(exchange: Exchange) -> Call:
    """The task that is asked for; those of other agents do not exist."""
    given = exchange.params.get("taskId")
    id = _id(given)
    call = of(exchange.caller).filter(pk=id).first() if id is not None else None
    if call is None:
        raise RpcError(INVALID_PARAMS, "Invalid params: there is no such task", {"taskId": given})
    return call


def open_among(caller: Caller, given: list[str]) -> list[Call]:
    """Those of these tasks that are the caller's, and not over."""
    ids = [id for id in map(_id, given) if id is not None]
    return [call for call in of(caller).filter(pk__in=ids) if call.is_open]


def _id(given: Any) -> UUID | None:
    """A task's id has one spelling."""
    try:
        id = UUID(given) if isinstance(given, str) else None
    except ValueError:
        return None
    return id if str(id) == given else None


def of(caller: Caller) -> QuerySet[Call]:
    """An agent's tasks: what it called at this door and was not refused there."""
    return Call.objects.filter(agent_id=caller.agent_id, door=DOOR).exclude(_NOT_TASKS).select_related("approval")


def _cursor(last: UUID) -> str:
    return urlsafe_b64encode(last.bytes).decode().rstrip("=")


def _place(cursor: Any) -> UUID | None:
    """Where the page before ended; none and an empty one are the beginning."""
    if cursor == "":
        return None
    try:
        if not isinstance(cursor, str):
            raise ValueError
        last = UUID(bytes=urlsafe_b64decode(cursor.encode("ascii") + b"=="))
        if _cursor(last) != cursor:
            raise ValueError
    except (ValueError, binascii.Error):
        raise RpcError(INVALID_PARAMS, "Invalid params: cursor is not one of ours") from None
    return last
