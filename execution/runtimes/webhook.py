"""The webhook-callback runtime: ask now, be called back later, or look whether the answer is there."""

from typing import Any
from urllib.parse import quote

from audit.canonical import canonical
from execution import envelope
from execution.egress import Response
from execution.errors import CallError, ErrorCode
from execution.runtimes import upstream
from execution.runtimes.base import AnswersLater, Invocation, RunResult
from execution.runtimes.loops import refuse_loop
from registry import strictjson

UNDER_WAY = frozenset({"", "pending", "running", "queued"})  # statuses that promise an answer
_NOT_YET = {202, 204}


class LookFailed(AnswersLater):
    """Whether there is an answer could not be found out; `delay` is when the tool wants to be asked again, if ever."""

    def __init__(self, error: CallError) -> None:
        super().__init__(error.traffic)
        self.delay = (error.failure.retry_after_ms or 0) / 1000


class WebhookRuntime:
    """Asks a service that knows the contract and takes its time."""

    def run(self, invocation: Invocation) -> RunResult:
        refuse_loop(invocation)
        headers = {"Content-Type": "application/json", "Accept": "application/json"}
        headers["X-Tool-Contract-Version"] = envelope.VERSION
        if invocation.return_address is not None:
            headers["X-Placet-Callback-Url"], headers["X-Placet-Callback-Token"] = invocation.return_address
        response = upstream.exchange(
            invocation,
            "POST",
            invocation.tool.runtime.options["endpoint"],
            headers=headers,
            body=canonical(envelope.request_envelope(invocation)),
        )
        upstream.check_status(response, invocation)
        if response.status != 200:
            raise _later(response, invocation)
        return _answer(response, invocation)

    def poll(self, invocation: Invocation) -> RunResult:
        """The answer of a call that the tool took before; AnswersLater if there is none yet, or none to be had."""
        endpoint = invocation.tool.runtime.options["endpoint"].rstrip("/")
        try:
            response = upstream.exchange(
                invocation,
                "GET",
                f"{endpoint}/{quote(invocation.call_id, safe='')}",
                headers={"Accept": "application/json", "X-Tool-Contract-Version": envelope.VERSION},
            )
            upstream.check_status(response, invocation)
        except CallError as error:
            if error.failure.can_retry or error.code is ErrorCode.TIMEOUT:
                raise LookFailed(error) from error  # the question failed, and not the call
            raise
        if response.status in _NOT_YET:
            raise AnswersLater(response.traffic)
        return _answer(response, invocation)


def is_under_way(response: Any) -> bool:
    """Whether what the tool says is that it has not finished."""
    status = response.get("status", "") if isinstance(response, dict) else None
    return isinstance(status, str) and status.strip().lower() in UNDER_WAY and not response.get("error")


def _answer(response: Response, invocation: Invocation) -> RunResult:
    try:
        told = strictjson.loads(response.body, max_bytes=max(len(response.body), 1))
    except strictjson.StrictJSONError:
        return envelope.read_response(response.body, invocation, traffic=response.traffic)  # says what is wrong with it
    if is_under_way(told):
        raise _later(response, invocation)
    return envelope.result_of(told, invocation, traffic=response.traffic)


def _later(response: Response, invocation: Invocation) -> Exception:
    if invocation.return_address is not None:
        return AnswersLater(response.traffic)
    message = "The tool wants to answer later, and nobody can wait for it here"
    return CallError(ErrorCode.EXECUTION_FAILED, message, traffic=response.traffic)
