"""Isolation: which tools need walls of their own, and the one failure for a wall that is not there."""

from execution.errors import CallError, ErrorCode
from registry.toolspec import ToolSpec


def is_confined(tool: ToolSpec) -> bool:
    """Whether a tool gets a fresh, limited process for each call: what is risky enough to be reviewed is."""
    return tool.risk.needs_review


def missing(wall: str, why: str) -> CallError:
    """The tool was not called, and will not be called without it."""
    return CallError(
        ErrorCode.ISOLATION_MISSING,
        f"This installation cannot isolate the tool: {wall} is not available",
        developer_message=why,
        details={"isolation_mode": wall},
        is_sent=False,
    )
