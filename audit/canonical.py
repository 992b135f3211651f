"""One JSON value, one sequence of bytes: what digests, hashes and signatures are computed over.

The rule: UTF-8 without spaces; object keys sorted by code point; strings escaped only where JSON demands it; an integer
is its decimal digits, of any size; a float is its shortest text that reads back equal and always shows that it is one
(`1` and `1.0` differ, so do `0.0` and `-0.0`); text is not normalised (é as one or as two code points differ). Whatever
JSON cannot say (NaN, infinity, lone surrogates, keys that are not text, other objects) is refused with ValueError.
"""

import math
from typing import Any

import orjson

_OPTIONS = orjson.OPT_SORT_KEYS | orjson.OPT_PASSTHROUGH_DATACLASS | orjson.OPT_PASSTHROUGH_DATETIME


def canonical(value: Any) -> bytes:
    """The canonical bytes of one JSON value; equal bytes mean equal values."""
    try:
        encoded = orjson.dumps(value, option=_OPTIONS)
    except TypeError as error:
        if "64-bit" not in str(error):
            raise ValueError(f"Not a JSON value: {error}") from error
        try:
            encoded = orjson.dumps(_with_wide_integers(value), option=_OPTIONS)
        except TypeError as second:
            raise ValueError(f"Not a JSON value: {second}") from second
    # The encoder writes NaN and infinity as null, which would make them equal to None.
    if b"null" in encoded and _has_unspeakable_float(value):
        raise ValueError("Not a JSON value: NaN and infinity have no JSON form.")
    return encoded


def _with_wide_integers(value: Any) -> Any:
    """The same value with integers beyond 64 bits already written out, since the encoder stops at 64."""
    match value:
        case dict():
            return {key: _with_wide_integers(item) for key, item in value.items()}
        case list() | tuple():
            return [_with_wide_integers(item) for item in value]
        case int() if not -(2**63) <= value < 2**64:
            return orjson.Fragment(str(value))
        case _:
            return value


def _has_unspeakable_float(value: Any) -> bool:
    match value:
        case dict():
            return any(map(_has_unspeakable_float, value.values()))
        case list() | tuple():
            return any(map(_has_unspeakable_float, value))
        case float():
            return not math.isfinite(value)
        case _:
            return False
