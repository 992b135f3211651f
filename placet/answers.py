"""What a tool returned, as JSON: a value or content, and nothing that JSON cannot carry."""

import dataclasses
import math
from base64 import b64encode
from enum import Enum
from typing import Any

from placet.content import CONTENT_TYPES

MAX_DEPTH = 64
_FORMATTED = ("datetime.datetime", "datetime.date", "datetime.time")


class BadResult(Exception):
    """A tool returned something that has no JSON form; the text says where, never what."""


def answer(result: Any, *, promises_content: bool = False) -> dict[str, Any]:
    """The final frame for a result: content if the tool returned content blocks, a value otherwise."""
    if isinstance(result, CONTENT_TYPES):
        return {"kind": "content", "content": _blocks([result])}
    if isinstance(result, list | tuple) and any(isinstance(item, CONTENT_TYPES) for item in result):
        if not all(isinstance(item, CONTENT_TYPES) for item in result):
            raise BadResult("the list mixes content with other values")
        return {"kind": "content", "content": _blocks(result)}
    if promises_content and isinstance(result, list | tuple) and not result:
        return {"kind": "content", "content": []}
    return {"kind": "value", "value": to_json(result)}


def _blocks(items: Any) -> list[dict[str, Any]]:
    try:
        blocks = [item.as_block() for item in items]
    except TypeError as error:
        raise BadResult(f"content is incomplete: {error}") from error
    checked: list[dict[str, Any]] = to_json(blocks)
    return checked


def to_json(value: Any, path: str = "", depth: int = 0) -> Any:
    """The JSON value of a Python value; dataclasses, enums, dates, UUIDs, sets and bytes have one as well."""
    kind = type(value)
    if value is None or kind is bool:
        return value
    if kind is str:
        return _text(value, path)
    if kind is int:
        if not -(2**63) <= value < 2**64:
            raise BadResult(f"{_place(path)} is an integer of more than 64 bits")
        return value
    if kind is float:
        if not math.isfinite(value):
            raise BadResult(f"{_place(path)} is not a finite number")
        return value
    if depth >= MAX_DEPTH:
        raise BadResult(f"the result is nested deeper than {MAX_DEPTH} levels, or contains itself")
    return _composite(value, kind, path, depth)


def _composite(value: Any, kind: type, path: str, depth: int) -> Any:
    if isinstance(value, Enum):
        return to_json(value.value, path, depth + 1)
    if isinstance(value, dict):
        return {_key(key, path): to_json(item, f"{path}/{key}", depth + 1) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [to_json(item, f"{path}/{number}", depth + 1) for number, item in enumerate(value)]
    if isinstance(value, set | frozenset):
        return sorted((to_json(item, path, depth + 1) for item in value), key=repr)
    if dataclasses.is_dataclass(value) and not isinstance(value, (type, *CONTENT_TYPES)):
        names = [field.name for field in dataclasses.fields(value)]
        return {name: to_json(getattr(value, name), f"{path}/{name}", depth + 1) for name in names}
    if isinstance(value, bytes | bytearray):
        return b64encode(value).decode("ascii")
    for simple in (str, int, float):  # subclasses, such as numpy.float64
        if isinstance(value, simple):
            return to_json(simple(value), path, depth)
    for cls in kind.__mro__:
        name = f"{cls.__module__}.{cls.__qualname__}"
        if name in _FORMATTED:
            return value.isoformat()
        if name == "uuid.UUID":
            return str(value)
    raise BadResult(f"{_place(path)} is {_named(kind)}, which has no JSON form")


def _key(key: Any, path: str) -> str:
    if isinstance(key, Enum):
        key = key.value
    if not isinstance(key, str):
        raise BadResult(f"a key of {_place(path)} is {_named(type(key))}, not a text")
    return _text(str(key), path)


def _text(text: str, path: str) -> str:
    if not text.isascii():
        try:
            text.encode()
        except UnicodeEncodeError:
            raise BadResult(f"{_place(path)} is a text with lone surrogates") from None
    if "\x00" in text:
        raise BadResult(f"{_place(path)} is a text with a NUL character")
    return text


def _named(kind: type) -> str:
    name = kind.__qualname__
    return f"{'an' if name[0] in 'aeioAEIO' else 'a'} {name}"


def _place(path: str) -> str:
    return f"the result at {path[:200]}" if path else "the result"
