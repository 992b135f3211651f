"""Approval page: the one question there is about a call, as MCP's URL elicitation asks it, and the answers to it.

The address opens a page that needs a login and decides nothing by being opened. Whoever may approve the call decides
there; what the person at the client answers says only whether the page was opened.
"""

from collections.abc import Mapping
from typing import Any

from execution import calls
from execution.models import Call, Elicitation, State
from execution.outcomes import approval_url
from execution.protocols.mcp.exchange import Era, Exchange
from execution.protocols.mcp.rpcerrors import INVALID_PARAMS, RpcError
from execution.protocols.mcp.taskstatus import reason

KEY = "approval"
FIRST_WITH_URLS = "2025-11-25"


def can_be_opened(exchange: Exchange) -> bool:
    """Whether the client offers to open an address; one that declares elicitation and no mode knows forms only."""
    if exchange.era is Era.PLAIN or exchange.version < FIRST_WITH_URLS:
        return False
    declared = exchange.capabilities.get("elicitation")
    return isinstance(declared, Mapping) and isinstance(declared.get("url"), Mapping)


def link(call: Call) -> str:
    assert call.approval_id is not None  # nobody waits for people without a question to them
    return approval_url(call.approval_id)


def question(call: Call) -> dict[str, str]:
    """The parameters of `elicitation/create`."""
    message = f"{reason(call)} Someone who may approve it decides on this page, after a login."
    return {"mode": "url", "url": link(call), "message": message}


def input_requests(call: Call) -> dict[str, Any]:
    return {KEY: {"method": "elicitation/create", "params": question(call)}}


def responses(params: Mapping[str, Any]) -> Mapping[str, Any]:
    """The answers that came with a request, by key; those to other questions are not ours to judge."""
    answers = params.get("inputResponses", {})
    if not isinstance(answers, Mapping) or not all(isinstance(answer, Mapping) for answer in answers.values()):
        raise RpcError(INVALID_PARAMS, "Invalid params: inputResponses must be an object of answers by key")
    return answers


def action_in(answers: Mapping[str, Any]) -> str:
    """What the person at the client did; empty if nothing is said of it."""
    if KEY not in answers:
        return ""
    action = answers[KEY].get("action")
    if not isinstance(action, str) or action not in Elicitation.Action.values:
        message = f"Invalid params: inputResponses.{KEY}.action must be accept, decline or cancel"
        raise RpcError(INVALID_PARAMS, message)
    return action


def take_back(call: Call, exchange: Exchange) -> Call:
    """The person at the client does not want it: a call that still waits for people never runs."""
    if call.state != State.AWAITING_APPROVAL:
        return call
    return calls.cancel(call, actor=f"agent:{exchange.caller.name}")
