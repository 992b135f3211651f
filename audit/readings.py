"""Readings: the same text with one layer of encoding taken off, and the way back to where each character came from."""

import html
import re
from bisect import bisect_right
from collections.abc import Callable, Iterator

_MAX_DEPTH = 2  # two layers: a double percent-encoding, JSON inside JSON, an escaped URL


class Reading:
    """A text as one decoder sees it; spans found in it can be traced to the text it was read from."""

    __slots__ = ("_from", "_is_token", "_parent", "_to", "text")

    def __init__(self, text: str, parent: "Reading | None" = None) -> None:
        self.text = text
        self._parent = parent
        self._to: list[int] = []  # where each piece starts here …
        self._from: list[int] = []  # … and where it started in the parent
        self._is_token: list[bool] = []  # a token was decoded as a whole, anything else was copied

    def origin(self, start: int, end: int) -> tuple[int, int]:
        """The span of the first text that the span start..end of this one was read from."""
        if self._parent is None:
            return start, end
        first, last = bisect_right(self._to, start) - 1, bisect_right(self._to, end - 1) - 1
        left = self._from[first] + (0 if self._is_token[first] else start - self._to[first])
        right = self._from[last + 1] if self._is_token[last] else self._from[last] + (end - self._to[last])
        return self._parent.origin(left, right)

    def decoded(self, tokens: re.Pattern[str], decode: Callable[[str], str]) -> "Reading":
        """This text with every token replaced by what it stands for."""
        child = Reading("", self)
        pieces: list[str] = []
        here = there = 0

        def add(piece: str, length: int, is_token: bool) -> None:
            nonlocal here, there
            child._to.append(here)
            child._from.append(there)
            child._is_token.append(is_token)
            pieces.append(piece)
            here += len(piece)
            there += length

        for found in tokens.finditer(self.text):
            if found.start() > there:
                add(self.text[there : found.start()], found.start() - there, False)
            add(decode(found.group()), found.end() - found.start(), True)
        add(self.text[there:], len(self.text) - there, False)
        child.text = "".join(pieces)
        child._from.append(len(self.text))
        return child


def _percent(token: str) -> str:
    return _utf8(bytes.fromhex(token.replace("%", "")))


def _utf8(raw: bytes) -> str:
    try:
        return raw.decode()
    except UnicodeDecodeError:
        return raw.decode("latin-1")


_LETTERS = {"n": "\n", "r": "\r", "t": "\t", "b": "\b", "f": "\f", "a": "\a", "v": "\v", "0": "\0"}


def _backslash(token: str) -> str:
    match token[1]:
        case "u":
            units = b"".join(int(unit, 16).to_bytes(2, "big") for unit in token.lower().split("\\u")[1:])
            return units.decode("utf-16-be", "replace")
        case "U":
            return "".join(chr(min(int(unit, 16), 0x10FFFF)) for unit in token.split("\\U")[1:])
        case "x" if len(token) > 2:
            return _utf8(bytes.fromhex(token.replace("\\x", "")))
        case letter:
            return _LETTERS.get(letter, letter)


def _nothing(token: str) -> str:
    return ""


# Each decoder: a text without which it has nothing to do, its tokens, and what a token stands for. A run is one token,
# because several bytes or surrogates may make one character.
_DECODERS: tuple[tuple[str, re.Pattern[str], Callable[[str], str]], ...] = (
    ("%", re.compile(r"(?:%[0-9A-Fa-f]{2})+"), _percent),
    (
        "\\",
        re.compile(r"(?:\\u[0-9A-Fa-f]{4})+|(?:\\U[0-9A-Fa-f]{8})+|(?:\\x[0-9A-Fa-f]{2})+|\\.", re.DOTALL),
        _backslash,
    ),
    ("&", re.compile(r"(?:&(?:#\d{1,7}|#[xX][0-9A-Fa-f]{1,6}|[A-Za-z][A-Za-z0-9]{1,30});)+"), html.unescape),
    ("\n", re.compile(r"\r?\n[ \t]*"), _nothing),
    ("\\n", re.compile(r"(?:\\r)?\\n"), _nothing),
    ("\0", re.compile(r"\0"), _nothing),
)


def readings(text: str) -> Iterator[Reading]:
    """The text itself, then every different text that up to two decodings make of it."""
    level = [Reading(text)]
    seen = {text}
    yield level[0]
    for _ in range(_MAX_DEPTH):
        deeper: list[Reading] = []
        for reading in level:
            for sign, tokens, decode in _DECODERS:
                if sign not in reading.text:
                    continue
                child = reading.decoded(tokens, decode)
                if child.text not in seen:
                    seen.add(child.text)
                    deeper.append(child)
                    yield child
        level = deeper
