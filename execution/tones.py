"""How states and doors are shown: a colour by the names unfold gives to its labels, and always a text."""

from execution.models import State

LABELS: dict[str, str] = {
    State.SUCCEEDED: "success",
    State.FAILED: "danger",
    State.TIMED_OUT: "danger",
    State.UNKNOWN: "danger",
    State.DENIED: "warning",
    State.REJECTED: "warning",
    State.EXPIRED: "warning",
    State.AWAITING_APPROVAL: "primary",
    State.QUEUED: "info",
    State.RUNNING: "info",
    State.WAITING_CALLBACK: "info",
}

DOORS = {
    "portal": "portal",
    "oxp": "OXP",
    "otc": "OTC",
    "native": "REST",
    "mcp": "MCP",
    "session": "Session",
    "contract": "Tool Contract",
    "grpc": "Tool Contract over gRPC",
}
