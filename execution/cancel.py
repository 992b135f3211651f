"""Cancel: an event that also wakes whoever waits for an answer, at once and without polling."""

import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext


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

    @contextmanager
    def waking(self, wake: Callable[[], None]) -> Iterator[None]:
        """Calls `wake` as soon as the event is set, if that is inside the block; never after it."""
        with self._lock:
            self._wakers.add(wake)
            if self.is_set():
                wake()
        try:
            yield
        finally:
            with self._lock:
                self._wakers.discard(wake)


def waking(cancel: Cancel | None, wake: Callable[[], None]) -> AbstractContextManager[None]:
    """`cancel.waking(wake)` for a call that can be cancelled, nothing for one that cannot."""
    return nullcontext() if cancel is None else cancel.waking(wake)
