"""Stop: whether we were asked to end."""

import time


class Stop:
    """Set by a signal's handler, which runs between two steps of the very thread that waits here.

    That is why it is no Event: this thread may just hold the Event's lock, and then its handler would wait for ever.
    """

    def __init__(self) -> None:
        self._is_set = False

    def set(self) -> None:
        self._is_set = True

    def is_set(self) -> bool:
        return self._is_set

    def wait(self, seconds: float) -> bool:
        """Whether it is set, after so many seconds at most; one that is set meanwhile is seen when they are over."""
        if not self._is_set:
            time.sleep(seconds)
        return self._is_set
