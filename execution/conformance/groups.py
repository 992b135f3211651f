"""The other groups of the contract: retry, auth and secrets, policy hooks, isolation, observability, determinism."""

import secrets
from collections.abc import Callable
from typing import Any

from audit.needles import Needles
from execution.conformance import contract, patience
from execution.conformance.probe import TRACE, Probe
from execution.conformance.reply import Reply
from execution.conformance.verdict import Failed, NotApplicable, shown

Check = Callable[[Probe], str]
_NOT_LET_IN = {"auth_invalid", "auth_forbidden", "auth_expired", "permission_denied"}


def tells_the_attempt(probe: Probe) -> str:
    """reports its attempt, counted from 1"""
    probe.response()
    usage = (probe.answered(probe.request(attempt=2)).response or {}).get("usage")
    told = usage.get("attempt") if isinstance(usage, dict) else None
    if not isinstance(told, int) or isinstance(told, bool) or told < 1:
        raise Failed(f"usage.attempt is {shown(told)}")
    return f"usage.attempt is {told} where our second was sent"


def is_final_about_bad_requests(probe: Probe) -> str:
    """says that a bad request is not worth another attempt"""
    error = probe.refusal(tool_contract_version="v2").error
    if "retryable" not in error:
        raise NotApplicable("it told of no error that says so")
    if error["retryable"] is not False:
        raise Failed(f"retryable is {shown(error['retryable'])}")
    return "retryable is false"


def says_what_is_worth_another_attempt(probe: Probe) -> str:
    """says of its failures whether another attempt may help"""
    if probe.fail is None:
        raise NotApplicable("give --fail-input, an input with which the tool fails")
    probe.first()
    reply = probe.ask(probe.request(input=dict(probe.fail)))
    if reply.response is None and not probe.endpoint.is_enveloped and not reply.is_answer:
        return f"answered {reply.status}, which says it"
    if not reply.error:
        raise Failed(f"answered {reply.kind} instead of failing with an error")
    if not isinstance(reply.error.get("retryable"), bool):
        raise Failed(f"retryable is {shown(reply.error.get('retryable'))}, neither true nor false")
    return f"retryable is {shown(reply.error['retryable'])}"


def needs_credentials(probe: Probe) -> str:
    """lets nobody in without credentials"""
    return _shut(probe, {})


def needs_the_right_credentials(probe: Probe) -> str:
    """lets nobody in with the wrong credentials"""
    return _shut(probe, {name: _wrong(value) for name, value in probe.credentials.items()})


def keeps_credentials_to_itself(probe: Probe) -> str:
    """never sends credentials back"""
    probe.first()
    brought = dict(probe.credentials) or {"Authorization": f"Bearer canary-{secrets.token_hex(16)}"}
    needles = Needles((name, value.removeprefix("Bearer ")) for name, value in brought.items())
    requests: list[dict[str, Any] | bytes] = [probe.request(), probe.request(tool_contract_version="v2"), b"{"]
    if probe.fail is not None:
        requests.append(probe.request(input=dict(probe.fail)))
    for request in requests:
        if needles.spans(probe.ask(request, credentials=brought).everything):
            raise Failed("what it was sent to prove the caller stands in its answer")
    return f"not in any of {len(requests)} answers"


def denies_as_the_contract_says(probe: Probe) -> str:
    """tells a denial as one, for good"""
    probe.enveloped()
    if probe.denied is None:
        raise NotApplicable("give --denied-input, an input that the tool refuses to its caller")
    probe.first()
    reply = probe.ask(probe.request(input=dict(probe.denied)))
    if reply.kind != "denied/permission_denied":
        raise Failed(f"answered {reply.kind}, not denied/permission_denied")
    if reply.error.get("retryable") is not False:
        raise Failed(f"retryable is {shown(reply.error.get('retryable'))}")
    return "answered denied/permission_denied, for good"


def is_isolated(probe: Probe) -> str:
    """runs in the isolation that its risk asks for"""
    raise NotApplicable("an endpoint runs on its own machine, whose isolation nobody sees from here")


def echoes_the_trace(probe: Probe) -> str:
    """echoes the trace"""
    told = probe.response().get("trace")
    if not isinstance(told, dict) or any(told.get(name) != value for name, value in TRACE.items()):
        raise Failed(f"trace is {shown(told)}")
    return "trace_id and span_id came back"


def tells_its_usage(probe: Probe) -> str:
    """reports how long it took"""
    usage = probe.response().get("usage")
    told = usage.get("duration_ms") if isinstance(usage, dict) else None
    if isinstance(told, bool) or not isinstance(told, int | float) or told < 0:
        raise Failed(f"usage.duration_ms is {shown(told)}")
    return f"usage.duration_ms is {told:g}"


def classifies_alike(probe: Probe) -> str:
    """classifies the same request the same way each time"""
    probe.first()
    kinds = [probe.ask(probe.request()).kind for _ in range(3)]
    if probe.endpoint.is_enveloped:
        kinds += [f"bad request: {probe.ask(probe.request(tool={})).kind}" for _ in range(2)]
    if len(set(kinds)) > (2 if probe.endpoint.is_enveloped else 1):
        raise Failed(f"the same request was answered {' and '.join(dict.fromkeys(kinds))}")
    return " and ".join(dict.fromkeys(kinds))


def answers_a_repeated_request_alike(probe: Probe) -> str:
    """gives a request that comes again the answer it had"""
    probe.first()
    request = probe.request()
    first, again = probe.ask(request), probe.ask(request)
    if first.kind != again.kind:
        raise Failed(f"answered {first.kind}, then {again.kind}")
    if _result(first) != _result(again):
        raise Failed("the second answer has another output")
    return f"twice {first.kind}, with the same output"


def _result(reply: Reply) -> object:
    return reply.response.get("output") if reply.response is not None else reply.body


def _shut(probe: Probe, credentials: dict[str, str]) -> str:
    if not probe.credentials:
        raise NotApplicable("give --token-env, the variable that holds the credentials")
    probe.first()
    reply = probe.ask(probe.request(), credentials=credentials)
    if not reply.is_unproven and reply.error.get("code") not in _NOT_LET_IN:
        raise Failed(f"answered {reply.kind}")
    return f"answered {reply.kind}"


def _wrong(value: str) -> str:
    """As long as the right ones, and of the same kind."""
    kind, space, token = value.rpartition(" ")
    return f"{kind}{space}{secrets.token_hex(len(token))[: len(token)]}"


GROUPS: dict[str, tuple[Check, ...]] = {
    contract.GROUP: contract.CHECKS,
    patience.GROUP: patience.CHECKS,
    "Retry": (tells_the_attempt, is_final_about_bad_requests, says_what_is_worth_another_attempt),
    "Auth/Secret": (needs_credentials, needs_the_right_credentials, keeps_credentials_to_itself),
    "Policy hooks": (denies_as_the_contract_says,),
    "Isolation": (is_isolated,),
    "Observability": (echoes_the_trace, tells_its_usage),
    "Determinism": (classifies_alike, answers_a_repeated_request_alike),
}
