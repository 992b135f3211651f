"""Facts: what is told of one finished attempt, the same in every form it is told in."""

from datetime import datetime
from typing import Any

from execution.claim import Claim
from execution.errors import Failure
from execution.retries import is_retryable
from execution.traceparent import traceparent

CONTRACT = "v1"


def facts_of(claim: Claim, failure: Failure | None, finished_at: datetime, duration_ms: float) -> dict[str, Any]:
    """Names, codes and times. Of secrets the reference; of what the tool was given or said, nothing."""
    tool, auth = claim.tool, claim.tool.auth
    _, trace, span, _ = traceparent(claim.id, claim.fence, claim.trace_id).split("-")
    request_id, trace_id = claim.call_id, claim.trace_id
    if claim.holds_secrets:  # the caller chose these two, and may have chosen badly
        request_id, trace_id = claim.redactor.text(request_id), claim.redactor.text(trace_id)
    return {
        "tool": tool.tool_id,
        "call": str(claim.id),
        "tool_request_id": request_id,
        "tool_status": status_of(failure),
        "tool_code": failure.code.wire if failure else "",
        "tool_reason": failure.code.value.reason if failure else "",
        "retryable": failure is not None and is_retryable(failure),
        "attempt": claim.fence,
        "duration_ms": duration_ms,
        "started_at": claim.started_at,
        "finished_at": finished_at,
        "tool_contract_version": CONTRACT,
        "tool_auth_profile": auth.get("profile", ""),
        "tool_auth_secret_ref": auth.get("secretRef", ""),
        "trace_id": trace_id or trace,
        "span_id": span,
    }


def status_of(failure: Failure | None) -> str:
    """The contract's three words."""
    if failure is None:
        return "ok"
    return "denied" if failure.is_denial else "error"
