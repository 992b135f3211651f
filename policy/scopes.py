"""Scopes: what a token may be used for, where it says so; a broader one holds the narrower."""

READ = "tools:read"  # see the tools, and what became of calls
CALL = "tools:call"
SCOPES = (READ, CALL)
_HELD_BY = {READ: frozenset({READ, CALL}), CALL: frozenset({CALL})}


def holds(granted: frozenset[str] | None, needed: str) -> bool:
    """Whether the granted scopes cover the needed one; None is a credential that is not limited to any."""
    return granted is None or not granted.isdisjoint(_HELD_BY[needed])
