"""A tool that always fails, after a while."""

import time

from placet import ToolError, Toolkit, tool

toolkit = Toolkit(name="failing", version="1.0.0", title="Failing", description="Fails.")


@tool(name="job", idempotency="read", annotations={"taskSupport": "required"})
def job() -> None:
    """Works for a second, then fails."""
    time.sleep(1)
    raise ToolError("The job failed, as it always does")
