"""Redaction: known secrets, sensitive keys, marked fields and tell-tale shapes become marks before anyone sees them.

Order matters: redact, then `clip`, then store; a secret cut in half would no longer be recognised.
"""

import base64
import binascii
import hashlib
from bisect import bisect_right
from collections.abc import Iterator, Mapping
from datetime import date, datetime, time
from decimal import Decimal
from enum import Enum
from itertools import accumulate
from typing import Any
from uuid import UUID

import orjson

from audit.canonical import canonical
from audit.keys import counts_things, is_sensitive
from audit.marks import UNREDACTABLE, clip, is_mark, mark
from audit.needles import Needles
from audit.patterns import SHORTEST, is_card, redacted
from audit.schemamarks import SchemaMarks

__all__ = ["UNREDACTABLE", "Redactor", "clip"]

_MAX_CHARACTERS = 32_000_000
_SPOKEN = (UUID, datetime, date, time, Decimal, Enum)  # objects whose text is what they mean


class Redactor:
    """Masks what must not be seen, for one call and the secrets known to it; when it fails it shows nothing at all."""

    def __init__(self, needles: Mapping[str, str] | None = None, others: Needles | None = None) -> None:
        """`needles` are this call's own secrets; `others` are those of the house, masked in what people see."""
        self._needles = Needles(needles.items()) if needles else None
        self._others = others

    def for_people(self, value: Any, schema: Mapping[str, Any] | None = None) -> Any:
        """What is stored and shown: no known secrets, sensitive keys, marked fields or texts shaped like secrets."""
        try:
            if self._needles:
                value = _by_value(value, self._needles)
            if self._others:
                value = _by_value(value, self._others)
            marks = SchemaMarks.of(schema) if schema else None
            if marks is not None and marks.is_secret:
                return _masked("schema", value)
            return _shown(value, marks)
        except Exception:  # whatever went wrong, the raw value must not pass
            return UNREDACTABLE

    def for_deciders(self, value: Any, schema: Mapping[str, Any] | None = None) -> Any:
        """What people decide about: exactly what will run, except known secrets and what the schema marks as secret."""
        try:
            known = _by_value(value, self._needles) if self._needles else value
            return _marked(known, SchemaMarks.of(schema) if schema else None)
        except Exception:  # as above
            return UNREDACTABLE

    def for_caller(self, value: Any) -> Any:
        """What the caller is answered: its own data, without the secrets that only we know."""
        if not self._needles:
            return value
        try:
            return _by_value(value, self._needles)
        except Exception:  # as above
            return UNREDACTABLE

    def texts(self, told: Mapping[str, str]) -> dict[str, str]:
        """Texts under names that somebody made up; a name says only what it is called, not that its text is secret."""
        shown: dict[str, str] = {}
        counted: dict[str, int] = {}
        for name, text in told.items():
            shown[_free(shown, self.text(name), counted)] = self.text(text)
        return shown

    def text(self, text: str) -> str:
        """One text as people may see it."""
        shown = self.for_people(text)
        return shown if isinstance(shown, str) else UNREDACTABLE


def _shown(value: Any, marks: SchemaMarks | None) -> Any:
    kind = type(value)
    if kind is str:
        return _shown_text(value) if len(value) >= SHORTEST else value
    if kind is dict:
        if _is_binary(value):
            value = {key: _summary(item) if key in ("data", "blob") else item for key, item in value.items()}
        shown: dict[str, Any] = {}
        counted: dict[str, int] = {}
        for key, item in value.items():
            name = key if type(key) is str else str(key)
            below = marks.under(name) if marks is not None else None
            free = _free(shown, _shown_text(name) if len(name) >= SHORTEST else name, counted)
            shown[free] = _shown_item(name, item, below)
        return shown
    if kind is list or kind is tuple:
        if marks is None:
            return [_shown(item, None) for item in value]
        return [_shown_item("", item, marks.at(index)) for index, item in enumerate(value)]
    if kind is int:
        return mark("card", str(value)) if is_card(value) else value
    if value is None or kind is bool or kind is float:
        return value
    if isinstance(value, (bytes, bytearray, memoryview)):
        return _digest(bytes(value))
    return _shown(_ordinary(value), marks)


def _marked(value: Any, marks: SchemaMarks | None) -> Any:
    if marks is None:
        return value
    if marks.is_secret:
        return _masked("schema", value)
    if isinstance(value, Mapping):
        return {key: _marked(item, marks.under(str(key))) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_marked(item, marks.at(index)) for index, item in enumerate(value)]
    return value


def _shown_item(key: str, item: Any, marks: SchemaMarks | None) -> Any:
    if marks is not None and marks.is_secret:
        return _masked("schema", item)
    if not is_sensitive(key) or (marks is not None and marks.is_plain):
        return _shown(item, marks)
    is_count = isinstance(item, (int, float)) and counts_things(key)
    return item if is_count else _masked("key", item)


def _shown_text(text: str) -> str:
    shown = redacted(text)
    if text[0] in "{[" or text[0].isspace():
        return _shown_json(shown)
    return shown


def _shown_json(text: str) -> str:
    """A text that is JSON itself has keys too; it is rewritten only if there is something to mask."""
    start = text.lstrip()[:1]
    if start not in ("{", "[") or is_mark(text):
        return text
    try:
        inner = orjson.loads(text)
    except orjson.JSONDecodeError:
        return text
    shown = _shown(inner, None)
    return text if shown == inner else orjson.dumps(shown).decode()


def _masked(label: str, value: Any) -> Any:
    """One mark for the whole value; what says no more than yes, no or nothing stays."""
    if value is None or isinstance(value, bool) or value in ("", [], {}):
        return value
    if isinstance(value, str):
        return value if is_mark(value) else mark(label, value)
    if isinstance(value, (bytes, bytearray, memoryview)):
        return mark(label, bytes(value).hex())
    return mark(label, canonical(_spoken(value)).decode())


def _is_binary(value: dict[Any, Any]) -> bool:
    """Content blocks of images, sound and files: Base64 beside its media type."""
    return ("mimeType" in value or "mime_type" in value) and ("data" in value or "blob" in value)


def _summary(content: Any) -> Any:
    if not isinstance(content, str) or is_mark(content):
        return content
    try:
        return _digest(base64.b64decode(content, validate=True))
    except (binascii.Error, ValueError):
        return content


def _digest(content: bytes) -> str:
    return f"[BINARY:{len(content)}:{hashlib.sha256(content).hexdigest()}]"


def _ordinary(value: Any) -> Any:
    """A JSON value for the few other objects whose meaning is plain."""
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, _SPOKEN):
        return str(value)
    if isinstance(value, Mapping):
        return dict(value)
    for kind in (str, int, float):
        if isinstance(value, kind):
            return kind(value)
    if isinstance(value, (list, tuple, set, frozenset)):
        return list(value)
    return UNREDACTABLE


def _spoken(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {str(key): _spoken(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_spoken(item) for item in value]
    return value if value is None or isinstance(value, (str, int, float)) else str(value)


def _free(taken: Mapping[str, Any], key: str, counted: dict[str, int]) -> str:
    """Two keys that became the same mark stay two keys; `counted` remembers how far the numbers of each went."""
    if key not in taken:
        return key
    number = counted.get(key, 1) + 1
    while f"{key}#{number}" in taken:
        number += 1
    counted[key] = number
    return f"{key}#{number}"


def _by_value(value: Any, needles: Needles) -> Any:
    """The value without known secrets, in any spelling, also where one was split over several texts."""
    texts: list[str] = []
    keys: list[str] = []
    for text, is_key in _leaves(value):
        (keys if is_key else texts).append(text)
    if sum(map(len, texts)) + sum(map(len, keys)) > _MAX_CHARACTERS:
        raise ValueError("Too much text to redact.")
    new_texts, new_keys = _without(texts, needles), _without(keys, needles)
    if new_texts is None and new_keys is None:
        return value
    return _rebuilt(value, iter(new_texts or texts), iter(new_keys or keys))


def _leaves(value: Any) -> Iterator[tuple[str, bool]]:
    """Every text of a value in document order, numbers too: a secret of digits may come back as one."""
    if isinstance(value, str):
        yield value, False
    elif isinstance(value, Mapping):
        for key, item in value.items():
            yield str(key), True
            yield from _leaves(item)
    elif isinstance(value, (list, tuple)):
        for item in value:
            yield from _leaves(item)
    elif isinstance(value, (bytes, bytearray, memoryview)):
        yield bytes(value).decode("latin-1"), False
    elif value is not None and not isinstance(value, bool):
        yield str(value), False


def _rebuilt(value: Any, texts: Iterator[str], keys: Iterator[str]) -> Any:
    if isinstance(value, Mapping):
        rebuilt: dict[str, Any] = {}
        counted: dict[str, int] = {}
        for item in value.values():
            key = _free(rebuilt, next(keys), counted)
            rebuilt[key] = _rebuilt(item, texts, keys)
        return rebuilt
    if isinstance(value, (list, tuple)):
        return [_rebuilt(item, texts, keys) for item in value]
    if value is None or isinstance(value, bool):
        return value
    text = next(texts)
    if isinstance(value, str):
        return text
    before = bytes(value).decode("latin-1") if isinstance(value, (bytes, bytearray, memoryview)) else str(value)
    return value if text == before else text


def _without(texts: list[str], needles: Needles) -> list[str] | None:
    """The texts with marks in place of secrets, or None if there are none."""
    new = [needles.exact(text) or text for text in texts]
    starts = [0, *accumulate(map(len, new))]
    spans = needles.spans("".join(new))
    if not spans and new == texts:
        return None
    # From the end, so that what is still to be replaced keeps its place.
    masked: set[int] = set()  # texts of which nothing is left
    for start, end, shown in reversed(spans):
        first, last = bisect_right(starts, start) - 1, bisect_right(starts, end - 1) - 1
        if first == last and first not in masked:
            text, offset = new[first], starts[first]
            new[first] = text[: start - offset] + shown + text[end - offset :]
        elif first != last:
            involved = {index for index in range(first, last + 1) if starts[index + 1] > starts[index]} - masked
            masked |= involved
            for index in involved:
                new[index] = shown
    return new
