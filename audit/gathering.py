"""Gathering: what comes within a moment is handed over together, by a thread that nobody waits for.

A process that is killed takes what came in its last moment along; nothing goes this way that must not be lost.
"""

import atexit
import os
import threading
import time
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from typing import Generic, TypeVar

Item = TypeVar("Item")


class Gathering(Generic[Item]):
    """Things in the order in which they came; `take` gets those of so many `seconds` at a time, and at the end."""

    def __init__(self, seconds: float, take: Callable[[list[Item]], None]) -> None:
        self._seconds, self._take = seconds, take
        self._begin()
        os.register_at_fork(after_in_child=self._begin)  # what its parent gathered is its parent's
        atexit.register(self._at_the_end)

    def add(self, item: Item) -> None:
        if not self._is_begun:
            self._start()
        self._items.append(item)
        if not self._is_due.is_set():
            self._is_due.set()

    def flush(self) -> None:
        """Hands over what has come by now."""
        with self._handing_over:
            # Taken out first: what `take` fails to take must not pile up.
            items = [self._items.popleft() for _ in range(len(self._items))]
            if items:
                self._take(items)

    def _begin(self) -> None:
        self._items: deque[Item] = deque()
        self._is_begun, self._beginning = False, threading.Lock()
        self._is_due, self._handing_over = threading.Event(), threading.RLock()

    def _start(self) -> None:
        with self._beginning:
            if not self._is_begun:
                threading.Thread(target=self._hand_over_for_ever, name="placet-gathering", daemon=True).start()
                self._is_begun = True

    def _hand_over_for_ever(self) -> None:
        while self._is_due.wait():
            time.sleep(self._seconds)
            self._is_due.clear()
            with suppress(Exception):  # whoever takes it says so itself, if there is anyone to say it to
                self.flush()

    def _at_the_end(self) -> None:
        with suppress(Exception):
            self.flush()
