"""Cancel: an event that also wakes whoever waits for an answer, at once and without polling."""

import threading
from collections.abc import Callable


class Cancel(threading.Event):
    """Set once, from any thread, when nobody wants the answer any more."""

    def __init__(self) -> None:
        super().__init__()
        self._wakers: set[Callable[[], None]] = set()
        self._lock = threading.Lock()

    def set(self) -> None:
        with self._lock:
            super().set()
            for wake in self._wakers:
                wake()

    def add(self, wake: Callable[[], None]) -> None:
        with self._lock:
            self._wakers.add(wake)
            if self.is_set():
                wake()

    def discard(self, wake: Callable[[], None]) -> None:
        with self._lock:
            self._wakers.discard(wake)


class waking:
    """Calls `wake` as soon as the call is cancelled, if that is inside the block; never after it."""

    __slots__ = ("_cancel", "_wake")

    def __init__(self, cancel: Cancel | None, wake: Callable[[], None]) -> None:
        self._cancel, self._wake = cancel, wake

    def __enter__(self) -> None:
        if self._cancel is not None:
            self._cancel.add(self._wake)

    def __exit__(self, *_: object) -> None:
        if self._cancel is not None:
            self._cancel.discard(self._wake)
