"""An answer that is larger than its caller takes: told in the same words, whichever runtime cut it off."""

from execution.errors import CallError, ErrorCode
from execution.traffic import NO_TRAFFIC, Traffic


def too_large(limit: int, *, is_sent: bool = True, traffic: Traffic = NO_TRAFFIC) -> CallError:
    """The failure, with the limit in bytes."""
    return CallError(
        ErrorCode.EXECUTION_FAILED,
        "The tool's answer is too large",
        details={"limit": limit, "refused": "response_too_large"},
        is_sent=is_sent,
        traffic=traffic,
    )
