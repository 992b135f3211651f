"""Bodies: whoever reads one waits for its client, so that only so many are read at once, and few of one caller.

A client that announces a body and does not send it would hold a thread of the web for as long as it likes.
"""

from collections import Counter
from collections.abc import Iterator
from threading import Condition
from typing import Any

from django.core.exceptions import BadRequest

from registry.api import errors

PATIENCE = 0.5  # seconds; a body that is there is read in far less


class Crowded(errors.Unread, BadRequest):
    """So many bodies are on their way that this one is not waited for.

    Not an OSError: Django takes that for a client that has gone, and its check of forms goes on with an empty body.
    """


def unmeasured(stream: Any, most: int) -> bytes:
    """A body that came without its length; of one that is larger than `most`, one byte more."""
    body = b""
    while len(body) <= most and (chunk := stream.read(most + 1 - len(body))):
        body += chunk
    return body


class Readers:
    """Seats for those who read: `in_all`, and `each` for one caller."""

    def __init__(self, *, in_all: int, each: int, patience: float = PATIENCE) -> None:
        self._in_all, self._each, self._patience = max(1, in_all), max(1, each), patience
        self._taken: Counter[str] = Counter()
        self._total = 0
        self._left = Condition()

    def seat(self, who: str) -> "Seat":
        return Seat(self, who)

    def sit(self, who: str) -> None:
        with self._left:
            if not self._has_room(who) and not self._left.wait_for(lambda: self._has_room(who), self._patience):
                raise Crowded
            self._taken[who] += 1
            self._total += 1

    def rise(self, who: str) -> None:
        with self._left:
            self._total -= 1
            self._taken[who] -= 1
            if not self._taken[who]:
                del self._taken[who]
            self._left.notify_all()

    def guard(self, environ: dict[str, Any]) -> None:
        """Has the body of this request read on a seat of its caller, whoever that is: nobody was asked yet."""
        if environ.get("CONTENT_LENGTH", "0") not in ("", "0") or "HTTP_TRANSFER_ENCODING" in environ:
            claimed = (environ.get(name) for name in ("HTTP_AUTHORIZATION", "HTTP_OXP_API_KEY", "HTTP_COOKIE"))
            environ["wsgi.input"] = Body(environ["wsgi.input"], self, next(filter(None, claimed), ""))

    def _has_room(self, who: str) -> bool:
        return self._total < self._in_all and self._taken[who] < self._each


class Seat:
    """Taken while inside."""

    __slots__ = ("_readers", "_who")

    def __init__(self, readers: Readers, who: str) -> None:
        self._readers, self._who = readers, who

    def __enter__(self) -> None:
        self._readers.sit(self._who)

    def __exit__(self, *_: object) -> None:
        self._readers.rise(self._who)


class Body:
    """What a client sends, as WSGI has it."""

    def __init__(self, stream: Any, readers: Readers, who: str) -> None:
        self._stream, self._readers, self._who = stream, readers, who

    def read(self, *size: int) -> bytes:
        with self._readers.seat(self._who):
            return bytes(self._stream.read(*size))

    def readline(self, *size: int) -> bytes:
        with self._readers.seat(self._who):
            return bytes(self._stream.readline(*size))

    def readlines(self, *hint: int) -> list[bytes]:
        with self._readers.seat(self._who):
            return list(self._stream.readlines(*hint))

    def __iter__(self) -> Iterator[bytes]:
        while line := self.readline():
            yield line
