"""Takes whatever its schema lets through."""

from typing import Any


def look(**given: Any) -> str:
    """Says what it was given."""
    return ", ".join(sorted(given)) or "nothing"
