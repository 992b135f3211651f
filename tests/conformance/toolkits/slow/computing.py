"""A tool that takes as long as it is told, and can be cancelled."""

import time
from typing import Annotated

from placet import Text, Toolkit, tool

toolkit = Toolkit(name="slow", version="1.0.0", title="Slow", description="Takes its time.")


@tool(name="compute", idempotency="read", timeout="90s")
def compute(
    seconds: Annotated[float, "How long it takes at least."] = 0,
    label: Annotated[str, "What it is for."] = "",
) -> Text:
    """Waits, then answers."""
    # Longer than a client is held that can be given a task; nothing is answered at once.
    time.sleep(seconds + 1 if seconds else 0)
    return Text(f"Computed {label or 'nothing'} for {seconds:g} s")
