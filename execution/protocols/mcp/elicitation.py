"""Elicitation: what a call that waits for a person answers, and how its client comes back for the end of it.

By what the client declared: a task, the address of the approval page, or the link in a text.
"""

import time
from collections.abc import Mapping
from typing import Any

from execution import calls, dispatch
from execution.fingerprint import fingerprint
from execution.messages import CallOutcome, CallRequest
from execution.models import Call, Elicitation, State
from execution.outcomes import outcome_of
from execution.protocols.mcp import approvalpage, elicitations, requeststate, tasks, tasksupport
from execution.protocols.mcp.exchange import Era, Exchange
from execution.protocols.mcp.requeststate import RequestState
from execution.protocols.mcp.results import CALL_ID
from execution.protocols.mcp.rpcerrors import URL_ELICITATION_REQUIRED, RpcError
from execution.protocols.mcp.taskstatus import reason

HOLD = 20.0  # seconds a retry waits for people before it is sent round again
RUN = 30.0  # and for the tool, once they agreed
TURNS = 8  # clients give up after ten retries; before that they get the link
LONGEST = 86_400.0  # seconds after which a state is worth nothing, however long people may take
AFTERWARDS = 600.0  # seconds in which a decided call can still be asked for
Action = Elicitation.Action


def asked(exchange: Exchange, outcome: CallOutcome) -> Mapping[str, Any]:
    """The answer to a call that waits for a person; RpcError where the revision asks by an error."""
    if tasksupport.is_declared(exchange) or tasksupport.is_augmented(exchange):
        return tasks.created(exchange, outcome)
    call = Call.objects.select_related("approval").get(pk=outcome.id)
    if approvalpage.can_be_opened(exchange):
        if exchange.era is Era.LEGACY:
            elicitations.send_away(call, session=exchange.session)
            raise _url_required(call)
        if (turn := _next_turn(exchange, call, elicitations.of(call))) is not None:
            return turn
    elicitations.send_away(call)
    return _link(call)


def resumed(exchange: Exchange, request: CallRequest | None = None) -> CallOutcome | None:
    """What became of the call that a retry belongs to; None if it belongs to none, and is a new call.

    A client that was sent away with a link has no state to bring: it makes the same call again, so `request` is looked
    for among the calls whose end was not told yet.
    """
    if exchange.era is Era.MODERN:
        answers = approvalpage.responses(exchange.params)
        if "requestState" in exchange.params:
            return _retried(exchange, answers)
    if request is None or request.call_id or tasksupport.is_declared(exchange) or tasksupport.is_augmented(exchange):
        return None
    return _repeated(request)


def left_running(outcome: CallOutcome) -> None:
    """The call takes longer than its client is held: made again, it is this one, and does not run twice."""
    elicitations.send_away(Call.objects.get(pk=outcome.id))


def _retried(exchange: Exchange, answers: Mapping[str, Any]) -> CallOutcome:
    state = requeststate.opened(exchange)
    action = approvalpage.action_in(answers) if state.asks else ""
    call = Call.objects.filter(pk=state.call, agent_id=exchange.caller.agent_id).first()
    if call is None:
        raise requeststate.refusal("invalid", "it belongs to no call of this agent")
    if not elicitations.take(call.pk, state.turn, action):
        raise requeststate.refusal("used", "it was used before", call.call_id)
    if action == Action.DECLINE:
        return outcome_of(approvalpage.take_back(call, exchange))
    if state.asks and action != Action.ACCEPT:  # nobody went to the page: there is nothing to wait for
        return outcome_of(call)
    return _held(call)


def _held(call: Call) -> CallOutcome:
    """The call's end, if people and the tool are quick enough."""
    if call.state == State.AWAITING_APPROVAL:
        dispatch.until_moved(call, wait=HOLD)
    return dispatch.follow(call.pk, wait=RUN)


def _repeated(request: CallRequest) -> CallOutcome | None:
    """A call that ended is told once: whoever makes it again after that wants another one."""
    found = elicitations.sent_away(request.caller.agent_id, fingerprint(request))
    if found is None:
        return None
    outcome = dispatch.follow(found, wait=request.wait)
    call = calls.read(found)
    assert call is not None
    if call.is_open:
        return outcome
    return outcome_of(call) if elicitations.tell(found) else None


def _next_turn(exchange: Exchange, call: Call, known: Elicitation) -> dict[str, Any] | None:
    """None when there were enough of them, or the person closed the question."""
    is_retry = "requestState" in exchange.params
    if known.turn >= TURNS or (is_retry and known.action == Action.CANCEL):
        return None
    asks = not (is_retry and known.action == Action.ACCEPT)  # the page was opened: it need not be offered again
    state = RequestState(call=call.pk, turn=known.turn, asks=asks, expires=_expiry(call))
    told: dict[str, Any] = {"resultType": "input_required", "requestState": state.sealed_for(exchange)}
    return {**told, "inputRequests": approvalpage.input_requests(call)} if asks else told


def _expiry(call: Call) -> float:
    assert call.approval is not None
    decided = call.approval.decide_by.timestamp() + call.approval.run_within
    return min(decided + AFTERWARDS, time.time() + LONGEST)


def _url_required(call: Call) -> RpcError:
    """For 2025-11-25: the client opens the page and makes the same call again."""
    elicitation = {**approvalpage.question(call), "elicitationId": str(call.pk)}
    return RpcError(URL_ELICITATION_REQUIRED, reason(call), {"elicitations": [elicitation]}, is_recorded=True)


def _link(call: Call) -> dict[str, Any]:
    """For every other client: a text that a model can pass on, and what to do next."""
    text = (
        f"{reason(call)} The call waits and runs by itself once it is approved at {approvalpage.link(call)} .\n"
        "Make exactly the same call again later to get its result; that asks nobody a second time."
    )
    return {"content": [{"type": "text", "text": text}], "isError": True, "_meta": {CALL_ID: call.call_id}}
