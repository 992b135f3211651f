"""What runtimes that speak HTTP have in common: one exchange through the guard, and statuses as failures (table B2)."""

import re
import time
from collections.abc import Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any
from urllib.parse import quote

from audit.redaction import Redactor, clip
from execution import egress
from execution.egress import Response
from execution.errors import CallError, ErrorCode
from execution.runtimes.base import Invocation
from execution.runtimes.oversize import too_large

MAX_EXCERPT = 400
_PLAIN = re.compile(r"[!-~]([ -~]*[!-~])?", re.ASCII)
_CODES = {401: ErrorCode.AUTH_INVALID, 403: ErrorCode.AUTH_FORBIDDEN}
_PASSING = {408, 425, 429}  # 4xx that may be otherwise the next time


def exchange(
    invocation: Invocation,
    method: str,
    url: str,
    *,
    headers: Mapping[str, str],
    body: bytes = b"",
    deadline: float | None = None,
) -> Response:
    """The tool's answer, whatever its status, or CallError; our headers, its credentials, its time, its limit."""
    try:
        return egress.request(
            method,
            url,
            headers=egress.merged({**own_headers(invocation), **headers}, invocation.credentials.headers),
            body=body,
            deadline=time.monotonic() + invocation.timeout if deadline is None else deadline,
            cancel=invocation.cancel,
            max_bytes=invocation.max_answer,
        )
    except egress.EgressError as error:
        raise failure(error, invocation) from error


def own_headers(invocation: Invocation) -> dict[str, str]:
    """What every request says about itself, the same for each attempt but for its span."""
    call_id = invocation.call_id
    key = call_id if _PLAIN.fullmatch(call_id) else quote(call_id, safe="")
    headers = {"User-Agent": "Placet", "Idempotency-Key": key}
    return headers | {"traceparent": invocation.traceparent} if invocation.traceparent else headers


def failure(error: egress.EgressError, invocation: Invocation) -> CallError:
    """How an exchange that brought no answer is told."""
    if isinstance(error, egress.AnswerTooLarge):
        return too_large(error.limit, is_sent=error.is_sent, traffic=error.traffic)
    code, message, more = _told(error, invocation)
    return CallError(code, message, is_sent=error.is_sent, traffic=error.traffic, **more)


def _told(error: egress.EgressError, invocation: Invocation) -> tuple[ErrorCode, str, dict[str, Any]]:
    match error:
        case egress.EgressDenied():
            details = {"refused": "egress_denied", "tool": invocation.tool.tool_id}
            more = {"developer_message": error.reason, "details": details}
            return ErrorCode.RUNTIME_INVALID, "The tool's address or headers may not be used", more
        case egress.EgressTimeout():
            message = f"The tool did not answer within {invocation.timeout:g} s"
            return ErrorCode.TIMEOUT, message, {"details": {"timeout_ms": round(invocation.timeout * 1000)}}
        case egress.EgressCancelled():
            return ErrorCode.CANCELED, "The call was cancelled while it ran", {}
        case egress.RedirectRefused():
            details = {"refused": "redirect_refused", "http_status": error.traffic.status}
            more = {"developer_message": error.reason, "details": details}
            return ErrorCode.EXECUTION_FAILED, "The tool answered with a redirect, which is not followed", more
    message = "The tool broke off before it answered" if error.is_sent else "The tool could not be reached"
    return ErrorCode.EXECUTION_FAILED, message, {"developer_message": error.reason, "can_retry": error.can_retry}


def check_status(response: Response, invocation: Invocation) -> None:
    """CallError for an answer that says by its status that it is none (table B2)."""
    status = response.status
    if status < 400:
        return
    said = excerpt(response.body, invocation)
    raise CallError(
        _CODES.get(status, ErrorCode.EXECUTION_FAILED),
        f"The tool answered {status}: {said}" if said else f"The tool answered {status}",
        can_retry=status in _PASSING or status >= 500,
        retry_after_ms=_retry_after(response.headers.value("retry-after")),
        details={"tool": invocation.tool.tool_id, "http_status": str(status)},
        traffic=response.traffic,
    )


def excerpt(body: bytes, invocation: Invocation) -> str:
    """The beginning of an answer; redacted before it is cut, for half a secret would not be recognised."""
    text = body.decode("utf-8", "replace").replace("\0", "\ufffd").strip()
    brought = {**invocation.secrets, **invocation.authorization, **invocation.credentials.needles}
    return clip(Redactor(brought).text(text), MAX_EXCERPT)


def _retry_after(value: str) -> int | None:
    """Milliseconds, from seconds or from a date; None if it is neither."""
    if value.isascii() and value.isdecimal() and len(value) <= 6:
        return int(value) * 1000
    try:
        moment = parsedate_to_datetime(value)
    except (TypeError, ValueError, OverflowError):
        return None
    moment = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    return max(0, min(round((moment - datetime.now(UTC)).total_seconds() * 1000), 10**9))
