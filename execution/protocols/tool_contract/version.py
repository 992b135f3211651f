"""The one version of the Tool Contract that we speak."""

from typing import Any

VERSION = "v1"
HEADER = "X-Tool-Contract-Version"


def is_ours(named: Any) -> bool:
    """A request that names no version takes ours; space and case do not matter, anything else is another version."""
    return named is None or (type(named) is str and named.strip().lower() in ("", VERSION))
