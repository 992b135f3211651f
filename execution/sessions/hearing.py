"""Hearing: since when heartbeats of outside workers reach this process without a break.

Time in which nobody could hear a worker is not held against it: it gets one whole lease to say that it lives.
"""

import time

from django.conf import settings

_since: float | None = None  # of the monotonic clock; None in a process that no heartbeat reaches


def begin() -> None:
    """From now on heartbeats are heard; those of the time before may have been lost."""
    global _since
    _since = time.monotonic()


def is_sound() -> bool:
    """Whether a silence that was noticed here is the worker's own."""
    return _since is not None and time.monotonic() - _since >= settings.PLACET_LEASE
