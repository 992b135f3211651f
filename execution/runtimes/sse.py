"""Server-sent events: the data of each event, taken from pieces that may be cut anywhere."""

from collections.abc import Iterable, Iterator

MAX_EVENTS = 10_000  # in one answer


class TooManyEvents(Exception):
    """Whoever sends so many has no answer."""


def events(pieces: Iterable[bytes]) -> Iterator[bytes]:
    """The data of every complete event that has some; how much is read in all, the pieces' source limits."""
    data: list[bytes] = []
    count = 0
    for line in _lines(pieces):
        if line:
            field, _, value = line.partition(b":")
            if field == b"data":
                data.append(value.removeprefix(b" "))
            continue
        if data:
            count += 1
            if count > MAX_EVENTS:
                raise TooManyEvents
            yield b"\n".join(data)
            data = []


def _lines(pieces: Iterable[bytes]) -> Iterator[bytes]:
    """Lines that end in LF, CR or both; one that never ends is no line."""
    rest: list[bytes] = []
    skip = False  # the other half of a line's end
    for piece in pieces:
        if skip and piece:
            piece = piece.removeprefix(b"\n")
            skip = False
        if not piece:
            continue
        skip = piece.endswith(b"\r")
        *lines, last = piece.replace(b"\r\n", b"\n").replace(b"\r", b"\n").split(b"\n")
        for line in lines:
            yield b"".join((*rest, line))
            rest = []
        if last:
            rest.append(last)
