"""A toolkit that tells about the system itself."""

from datetime import UTC, datetime

from placet import Toolkit, tool

toolkit = Toolkit("System", "1.0.0")


@tool(
    risk="low",
    capabilities=["data.read"],
    idempotency="read",
    dispatch="inline",
    timeout="2s",
    annotations={"readOnlyHint": True},
)
def get_timestamp() -> datetime:
    """Gets the current time as an ISO 8601 timestamp in UTC."""
    return datetime.now(UTC)
