"""JSON as we accept it from strangers: one meaning, bounded size, nothing that a database or a peer would choke on."""

import json
import math
import re
from collections.abc import Iterator
from typing import Any

MAX_BYTES = 1_000_000
MAX_DEPTH = 64
MAX_VALUES = 100_000  # values of all kinds, the outermost included

# A text that never ends is one text up to the end: otherwise each of its quotes would be looked at as a beginning.
_TEXT = re.compile(rb'"(?:[^"\\]++|\\.)*+(?:"|\\?\Z)', re.DOTALL)
_SAME_BRACKETS = bytes.maketrans(b"{}", b"[]")
_ALL_BUT_BRACKETS = bytes(set(range(256)) - set(b"[]{}"))
_LONG_NUMBER = re.compile(rb"[0-9]{19}")
_SUSPECT_ESCAPE = re.compile(r"\\u(?:0000|[dD][89a-fA-F])")


class StrictJSONError(ValueError):
    """The body is not JSON that we accept; the message never repeats its content."""

    def __init__(self, code: str, message: str, status: int = 400, line: int | None = None) -> None:
        super().__init__(message)
        self.line = line
        self.code = code
        self.message = message
        self.status = status


def loads(body: bytes, *, max_bytes: int = MAX_BYTES) -> Any:
    """The value of a body, or a StrictJSONError that says what is wrong with it."""
    if len(body) > max_bytes:
        raise StrictJSONError("too_large", f"The body is larger than {max_bytes} bytes.", 413)
    try:
        text = body.decode()
    except UnicodeDecodeError as error:
        raise StrictJSONError("bad_utf8", f"The body is not UTF-8 (byte {error.start}).") from None
    if text.startswith("\ufeff") or "\0" in text:
        raise StrictJSONError("bad_character", "The body starts with a byte order mark or holds a NUL.")
    _refuse_large_shape(body)
    decoder = _WITH_LONG_NUMBERS if _LONG_NUMBER.search(body) else _DECODER
    try:
        value = decoder.decode(text)
    except StrictJSONError:
        raise
    except RecursionError:
        raise _too_deep() from None
    except json.JSONDecodeError as error:
        told = f"The body is not JSON: {error.msg} (character {error.pos})."
        raise StrictJSONError("malformed", told, line=error.lineno) from None
    if "\\u" in text and _SUSPECT_ESCAPE.search(text):
        _refuse_bad_characters(value)
    return value


def _refuse_large_shape(body: bytes) -> None:
    """Judges depth and number of values before anything is built; looks closer only where a quick count worries."""
    opened = body.count(b"[") + body.count(b"{")
    if opened <= MAX_DEPTH and opened + body.count(b",") < MAX_VALUES:
        return
    bare = _TEXT.sub(b"0", body)  # brackets and commas inside texts do not count
    towers = bare.translate(_SAME_BRACKETS, _ALL_BUT_BRACKETS)
    for _ in range(MAX_DEPTH):
        towers = towers.replace(b"[]", b"")  # each round takes the innermost level away
        if not towers:
            break
    if b"[]" in towers or towers.count(b"[") > MAX_DEPTH:
        raise _too_deep()
    if bare.count(b"[") + bare.count(b"{") + bare.count(b",") >= MAX_VALUES:
        raise StrictJSONError("too_many_nodes", f"The body holds more than {MAX_VALUES} values.", 413)


def _refuse_bad_characters(value: Any) -> None:
    for text in _texts(value):
        if "\0" in text or any("\ud800" <= character <= "\udfff" for character in text):
            raise StrictJSONError("bad_character", "A text holds a NUL or half of a surrogate pair.")


def _texts(value: Any) -> Iterator[str]:
    """Every text and every key inside a value."""
    waiting = [value]
    while waiting:
        item = waiting.pop()
        if isinstance(item, str):
            yield item
        elif isinstance(item, dict):
            yield from item
            waiting.extend(item.values())
        elif isinstance(item, list):
            waiting.extend(item)


def _too_deep() -> StrictJSONError:
    return StrictJSONError("too_deep", f"The body is nested more than {MAX_DEPTH} levels deep.")


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members = dict(pairs)
    if len(members) != len(pairs):
        raise StrictJSONError("duplicate_key", "An object holds the same key twice.")
    return members


def _float(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        raise StrictJSONError("bad_number", "A number is too large.")
    return number


def _integer(text: str) -> int:
    if len(text) <= 20 and -(2**63) <= (number := int(text)) < 2**64:
        return number
    raise StrictJSONError("bad_number", "An integer does not fit 64 bits.")


def _constant(name: str) -> Any:
    raise StrictJSONError("bad_number", "NaN and Infinity are not JSON.")


_DECODER = json.JSONDecoder(object_pairs_hook=_object, parse_float=_float, parse_constant=_constant)
_WITH_LONG_NUMBERS = json.JSONDecoder(
    object_pairs_hook=_object, parse_float=_float, parse_constant=_constant, parse_int=_integer
)
