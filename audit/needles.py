"""Needles: one secret value in every spelling under which it could slip out."""

import base64
import re
import shlex
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path

from audit.marks import mark
from audit.patterns import LOWER
from audit.readings import Reading, readings

MIN_BYTES = 8
_MIN_SPELLING = 4  # a shorter text is only recognised where it stands alone

_COMMON = Path(__file__).with_name("common_words.txt")

Span = tuple[int, int, str]  # start, end, mark


def problem(value: str) -> str | None:
    """Why a value cannot be kept as a secret, or None: what is too short or too common cannot be masked safely."""
    if len(value.encode("utf-8", "surrogatepass")) < MIN_BYTES:
        return f"A secret must have at least {MIN_BYTES} bytes."
    if value.strip().lower() in _common_words():
        return "This is a common word, not a secret: masking it would black out ordinary texts."
    return None


@cache
def _common_words() -> frozenset[str]:
    return frozenset(_COMMON.read_text().split())


class Needles:
    """Secrets by the names they are marked with, ready to be found in any text."""

    def __init__(self, values: Iterable[tuple[str, str]]) -> None:
        self._exact: dict[str, str] = {}
        self._spellings: dict[str, str] = {}  # spelling -> mark, matched as written
        self._hex: dict[str, str] = {}  # the same without regard to case
        self._base64: dict[str, str] = {}
        for ref, value in values:
            if not value:
                continue
            shown = mark(ref, value)
            self._exact.setdefault(value, shown)
            for spelling in _written(value):
                if len(spelling) >= _MIN_SPELLING:
                    self._spellings.setdefault(spelling, shown)
            for raw in _bytes(value):
                if len(raw) >= MIN_BYTES - 2:
                    self._hex.setdefault(raw.hex(), shown)
                    for core in _base64_cores(raw):
                        self._base64.setdefault(core, shown)

    def __bool__(self) -> bool:
        return bool(self._exact)

    def exact(self, text: str) -> str | None:
        """The mark of a text that is a secret as a whole, however short."""
        return self._exact.get(text)

    def spans(self, text: str) -> list[Span]:
        """Where secrets stand in a text, in any spelling; ordered, merged where they touch."""
        found: list[Span] = []
        for reading in readings(text):
            found.extend(self._in(reading))
        return _merged(found)

    def _in(self, reading: Reading) -> Iterator[Span]:
        text = reading.text
        for spelling, shown in self._spellings.items():
            for span in _occurrences(text, spelling):
                yield *reading.origin(*span), shown
        lowered = text.lower() if text.isascii() else text.translate(LOWER)
        for spelling, shown in self._hex.items():
            for span in _occurrences(lowered, spelling):
                yield *reading.origin(*span), shown
        for core, shown in self._base64.items():
            for start, end in _occurrences(text, core):
                # The letters beside the core carry some of the secret's bits too.
                left = start - 1 if start and _is_base64(text[start - 1]) else start
                right = end + 1 if end < len(text) and _is_base64(text[end]) else end
                while right < len(text) and right - end < 3 and text[right] == "=":
                    right += 1
                yield *reading.origin(left, right), shown


def _occurrences(text: str, spelling: str) -> Iterator[tuple[int, int]]:
    start = text.find(spelling)
    while start >= 0:
        end = start + len(spelling)
        yield start, end
        start = text.find(spelling, end)


def _written(value: str) -> Iterator[str]:
    """Spellings that keep the value's own letters; what escapes single characters is undone by the readings instead."""
    yield value
    yield value.replace(" ", "+")
    if "'" in value:
        yield shlex.quote(value)[1:-1]
        yield value.replace("'", "'\\''")
    # A secret may itself look encoded; then a reading decodes it along with what is around it.
    for reading in readings(value):
        if len(reading.text) >= MIN_BYTES:
            yield reading.text
    for encoding in ("utf-16-le", "utf-16-be", "utf-8"):
        if not value.isascii():
            yield value.encode(encoding, "surrogatepass").decode("latin-1")


def _bytes(value: str) -> Iterator[bytes]:
    for encoding in ("utf-8", "utf-16-le", "utf-16-be"):
        yield value.encode(encoding, "surrogatepass")


def _base64_cores(raw: bytes) -> Iterator[str]:
    """What is common to every Base64 text that holds these bytes, for each of the three places a byte can begin at."""
    for offset in range(3):
        encoded = base64.b64encode(bytes(offset) + raw).decode()
        core = encoded[(offset * 8 + 5) // 6 : (offset + len(raw)) * 8 // 6]
        yield core
        yield core.replace("+", "-").replace("/", "_")


_BASE64 = re.compile(r"[A-Za-z0-9+/_-]")


def _is_base64(letter: str) -> bool:
    return _BASE64.match(letter) is not None


def _merged(spans: list[Span]) -> list[Span]:
    merged: list[Span] = []
    for start, end, shown in sorted(spans, key=lambda span: (span[0], -span[1])):
        if merged and start < merged[-1][1]:
            before = merged[-1]
            merged[-1] = (before[0], max(before[1], end), before[2])
        else:
            merged.append((start, end, shown))
    return merged
