"""News: what a running tool says of itself, progress and log lines, to whoever holds the line for it.

Nothing is kept: the record of a call is its row and its trail. News reaches every process, at most so often.
"""

import queue
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from threading import Lock
from typing import Any
from uuid import UUID

import orjson
from django.db import DatabaseError

from execution import bell

BURST = 20  # told at once
PER_SECOND = 10.0  # told for longer
MAX_TOLD = 1_000  # characters of a message; four bytes each, or six where JSON escapes them, still fit the bell
MAX_NUMBER = 2**53
LEVELS = ("debug", "info", "notice", "warning", "error", "critical", "alert", "emergency")  # as syslog orders them
MAX_KEPT = 1_000  # that a listener has not read yet

News = Mapping[str, Any]


class Speaker:
    """The voice of one attempt, as long as one is inside: what comes too often waits, and of it the latest is told."""

    def __init__(self, call: UUID, *, is_local: bool = False) -> None:
        self._call = call
        self._is_local = is_local
        self._left = float(BURST)
        self._at = time.monotonic()
        self._held: dict[str, News] = {}  # by kind
        self._lock = Lock()

    def __enter__(self) -> "Speaker":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def tell(self, said: Mapping[str, Any], words: str) -> None:
        """What a tool said, with its words as they may be shown."""
        news = _shaped(said, words)
        if news is None:
            return
        with self._lock:
            now = time.monotonic()
            self._left = min(float(BURST), self._left + (now - self._at) * PER_SECOND)
            self._at = now
            if self._left < 1.0:
                self._held[news["kind"]] = news
                return
            self._left -= 1.0
            self._held.pop(news["kind"], None)
        self._say(news)

    def close(self) -> None:
        """The last word of each kind, if it was held back."""
        with self._lock:
            held, self._held = list(self._held.values()), {}
        for news in held:
            self._say(news)

    def _say(self, news: News) -> None:
        with suppress(DatabaseError):  # it was only news
            bell.say(topic(self._call), orjson.dumps(news).decode(), is_local=self._is_local)


class Listener:
    """News of one call in the order in which it was told; who is slow hears the first of it."""

    def __init__(self) -> None:
        self._queue: queue.Queue[News | None] = queue.Queue(MAX_KEPT)

    def hear(self, words: str) -> None:
        """Never waits: it is called by the one thread that hears everything."""
        with suppress(queue.Full):
            self._queue.put_nowait(orjson.loads(words) if words else None)

    def wake(self) -> None:
        """Something else happened: whoever waits for news has a look."""
        self.hear("")

    @property
    def is_waiting(self) -> bool:
        """Whether something was told that nobody has read."""
        return not self._queue.empty()

    def next(self, wait: float) -> News | None:
        """The next news; None if there is none within `wait` seconds, or something else happened."""
        try:
            return self._queue.get(timeout=wait) if wait > 0 else self._queue.get_nowait()
        except queue.Empty:
            return None


def topic(call: UUID) -> str:
    return f"news:{call}"


def _shaped(said: Mapping[str, Any], words: str) -> News | None:
    """Only what is known to be news: a tool's process can send anything."""
    told: dict[str, Any] = {"kind": said["kind"], "message": words[:MAX_TOLD]}
    if said["kind"] == "log":
        level = said.get("level")
        return told | {"level": level if level in LEVELS else "info"}
    if said["kind"] != "progress" or not _is_number(said.get("done")):
        return None
    total = said.get("total")
    return told | {"done": said["done"], "total": total if _is_number(total) else None}


def _is_number(value: Any) -> bool:
    return type(value) in (int, float) and -MAX_NUMBER <= value <= MAX_NUMBER


@contextmanager
def listening(call: UUID) -> Iterator[Listener]:
    """While inside, news of the call is collected."""
    listener = Listener()
    with bell.hearing(topic(call), listener.hear):
        yield listener
