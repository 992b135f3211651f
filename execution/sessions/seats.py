"""Seats: a waiting session holds a thread of the web, so there are only so many seats, in all and for each caller."""

import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager

from django.conf import settings

_lock = threading.Lock()
_taken: Counter[int] = Counter()


@contextmanager
def taken(agent: int) -> Iterator[bool]:
    """Whether there is a seat, which is held while inside."""
    with _lock:
        is_seated = _taken.total() < _in_all() and _taken[agent] < _for_each()
        _taken[agent] += is_seated
    try:
        yield is_seated
    finally:
        with _lock:
            _taken[agent] -= is_seated
            if not _taken[agent]:
                del _taken[agent]


def _in_all() -> int:
    return max(1, settings.PLACET_WEB_THREADS * 3 // 8)


def _for_each() -> int:
    return max(1, settings.PLACET_WEB_THREADS // 4)
