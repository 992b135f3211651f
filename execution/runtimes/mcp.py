"""The mcp runtime: a tool of an upstream MCP server over Streamable HTTP, in either era of the protocol."""

import threading
import time
from contextlib import suppress
from dataclasses import replace
from typing import Any

from execution.cancel import Cancel
from execution.errors import CallError, ErrorCode
from execution.runtimes import mcpsession
from execution.runtimes.base import Invocation, RunResult
from execution.runtimes.loops import refuse_loop
from execution.runtimes.mcpresult import result_of
from execution.runtimes.mcpsession import Session, SessionLost
from execution.runtimes.mcpwire import RpcError, Wire, new_id

GOODBYE = 2.0  # seconds in which a server may be told that nobody waits any more
MAX_GOODBYES = 16  # at the same time

_goodbyes = threading.BoundedSemaphore(MAX_GOODBYES)
_GIVEN_UP = (ErrorCode.CANCELED, ErrorCode.TIMEOUT)
# What the server says about a request, in our words; everything else failed for a reason of its own.
_CODES = {
    -32601: (ErrorCode.UNSUPPORTED_TOOL, False),
    -32602: (ErrorCode.INVALID_INPUT, False),
    -32603: (ErrorCode.EXECUTION_FAILED, True),
    -32021: (ErrorCode.RUNTIME_INVALID, False),  # it needs a client that can do more
    -32022: (ErrorCode.RUNTIME_INVALID, False),  # it speaks other versions
}


class McpRuntime:
    """Calls a tool that another server offers."""

    def run(self, invocation: Invocation) -> RunResult:
        refuse_loop(invocation)
        wire = Wire(invocation, time.monotonic() + invocation.timeout)
        try:
            try:
                return self._once(invocation, wire)
            except SessionLost:
                mcpsession.forget(invocation)
                return self._once(invocation, wire)
        except SessionLost:
            message = "The MCP server forgets its sessions as soon as they are opened"
            raise CallError(ErrorCode.EXECUTION_FAILED, message, can_retry=True, traffic=wire.traffic) from None
        except CallError as error:
            error.traffic = wire.traffic
            raise

    def _once(self, invocation: Invocation, wire: Wire) -> RunResult:
        try:
            session = mcpsession.session_for(invocation, wire)
        except RpcError as error:
            raise _told(error, is_sent=False) from error
        except CallError as error:
            error.is_sent = False  # whatever was sent, the tool was not called
            raise
        return _called(invocation, wire, session)


def _called(invocation: Invocation, wire: Wire, session: Session) -> RunResult:
    name, id = invocation.tool.runtime.options["tool"], new_id()
    meta: dict[str, Any] = {"progressToken": id}
    if invocation.traceparent:
        meta["traceparent"] = invocation.traceparent
    params = session.params({"name": name, "arguments": dict(invocation.arguments)}, **meta)
    headers = session.headers("tools/call", name) | mcpsession.parameter_headers(session, invocation)
    try:
        answered = wire.request("tools/call", params, headers, id=id, max_bytes=invocation.max_answer)
    except RpcError as error:
        if error.status == 404 and session.id:
            raise SessionLost from error
        raise _told(error) from error
    except CallError as error:
        if error.failure.details.get("http_status") == "404" and session.id:
            raise SessionLost from error
        if error.code in _GIVEN_UP and error.is_sent and not session.is_modern:
            _say_goodbye(invocation, session, id)  # in the stateless era the end of the connection says it
        raise
    return result_of(answered.result, invocation, wire.traffic)


def _told(error: RpcError, *, is_sent: bool = True) -> CallError:
    code, can_retry = _CODES.get(error.code, (ErrorCode.EXECUTION_FAILED, False))
    return CallError(
        code,
        error.message or "The MCP server refused the request without saying why",
        can_retry=can_retry,
        details={"jsonrpc_code": error.code},
        is_sent=is_sent,
        traffic=error.traffic,
    )


def _say_goodbye(invocation: Invocation, session: Session, id: str) -> None:
    """Tells the server, without anyone waiting for it, that the answer is no longer wanted."""
    if not _goodbyes.acquire(blocking=False):
        return

    def say() -> None:
        try:
            wire = Wire(replace(invocation, cancel=Cancel()), time.monotonic() + GOODBYE)
            params = {"requestId": id, "reason": "nobody waits for it any more"}
            with suppress(CallError):
                wire.notify("notifications/cancelled", params, session.headers("notifications/cancelled"))
        finally:
            _goodbyes.release()

    try:
        threading.Thread(target=say, name="placet-goodbye", daemon=True).start()
    except RuntimeError:  # no more threads
        _goodbyes.release()
