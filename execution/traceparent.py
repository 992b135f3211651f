"""traceparent: the W3C header by which a tool's own trace joins the call's; the same for the same attempt."""

import hashlib
import re
from functools import lru_cache
from uuid import UUID

_TRACE = re.compile(r"(?!0{32})[0-9a-f]{32}")


@lru_cache(maxsize=256)  # the tool is told it, and soon after the operator
def traceparent(call: UUID, attempt: int, trace_id: str) -> str:
    """Under the caller's trace where it named one in the W3C's form, else under one that is the call's own."""
    trace = trace_id.lower()
    span = hashlib.sha256(f"{call}:{attempt}".encode()).hexdigest()[:16]
    return f"00-{trace if _TRACE.fullmatch(trace) else call.hex}-{span}-01"
