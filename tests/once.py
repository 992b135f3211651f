"""Tests that run on one database although they touch it: what each is about lies before or beside the database.

Whatever hangs on the database stays on both: races, locks, constraints, triggers, SQL of our own, claims, sweeps, the
audit chain, searching, paging, ordering, and every text that a stranger sends and we keep.
"""

from __future__ import annotations

import pytest

# A file, or a folder of them, and why one database is enough.
FILES = {
    "tests/runtimes/": "a runtime runs what it is given and knows no database",
    "tests/execution/test_egress_attempts.py": "what goes out to a web tool, and when again; attempts: test_perform.py",
    "tests/execution/test_egress_doors.py": "the example web service; what is kept of a call: test_perform.py",
    "tests/execution/test_grpc_doors.py": "the example gRPC service and faults on the wire to it",
    "tests/execution/test_mcp_doors.py": "the example MCP server",
    "tests/execution/test_sandbox_doors.py": "modules and containers behind a door",
}
# In these files, but about the database.
NEVERTHELESS = {"test_what_an_attempt_sent_and_got_can_never_be_changed"}


def is_enough(item: pytest.Item) -> bool:
    """Whether the run on SQLite says all that this test can say."""
    return _is_in_a_browser(item) or (
        item.nodeid.startswith(tuple(FILES)) and item.name not in NEVERTHELESS and not _commits(item)
    )


def _is_in_a_browser(item: pytest.Item) -> bool:
    """What a browser does with a page hangs on markup, scripts and colours; the page itself is tested without one."""
    return any("chromium" in marker.args for marker in item.iter_markers("needs"))


def _commits(item: pytest.Item) -> bool:
    """A test that commits for real may be about what others see of it."""
    marker = item.get_closest_marker("django_db")
    asks = marker is not None and (marker.kwargs.get("transaction", False) or True in marker.args)
    return asks or "transactional_db" in getattr(item, "fixturenames", [])
