"""JSON arguments to the Python values a function's hints promise."""

import dataclasses
import inspect
import typing
from base64 import b64decode
from collections.abc import Callable, Mapping
from enum import Enum
from typing import Any

from placet import hints
from placet.context import ToolContext
from placet.errors import InvalidInputError

Convert = Callable[[Any], Any]


class Mismatch(Exception):
    """A value that is not of the promised kind; the text says what it must be and never shows the value."""


class Plan:
    """How one function is called: worked out once, used for every call."""

    __slots__ = ("_converters", "_takes_anything", "context_parameter", "promises_content")

    def __init__(self, function: Callable[..., Any]) -> None:
        known = hints.of_function(function)
        self.context_parameter: str | None = None
        self.promises_content = "return" in known and hints.is_content(known["return"])
        self._converters: dict[str, Convert] = {}
        self._takes_anything = False
        for name, parameter in inspect.signature(function).parameters.items():
            if parameter.kind is parameter.VAR_KEYWORD:
                self._takes_anything = True
            elif name in known and hints.is_context(known[name]):
                self.context_parameter = name
            else:
                self._converters[name] = converter(known.get(name, Any))

    def keywords(self, arguments: Mapping[str, Any], context: ToolContext | None) -> dict[str, Any]:
        """The keyword arguments of one call."""
        keywords: dict[str, Any] = {}
        for name, value in arguments.items():
            convert = self._converters.get(name)
            if convert is None:
                if not self._takes_anything or name == self.context_parameter:
                    raise _invalid(name, "Is not a parameter of this tool")
                keywords[name] = value
                continue
            try:
                keywords[name] = convert(value)
            except Mismatch as mismatch:
                raise _invalid(name, str(mismatch)) from None
        if self.context_parameter is not None:
            keywords[self.context_parameter] = context
        return keywords


def _invalid(name: str, reason: str) -> InvalidInputError:
    return InvalidInputError("Some input parameters are invalid", developer_message=f"{name}: {reason}")


def converter(hint: Any) -> Convert:
    """The function that makes a hint's Python value of a JSON value, or raises Mismatch."""
    hint, _ = hints.unwrap(hint)
    simple = _SIMPLE.get(hint) if isinstance(hint, type) or hint is None else None
    if simple is not None:
        return simple
    if form := hints.format_of(hint):
        return _formatted(hint, form)
    if hints.is_enum(hint):
        return _choice({_typed(member.value): member for member in hint})
    if typing.get_origin(hint) is typing.Literal:
        choices = typing.get_args(hint)
        return _choice({_typed(item.value if isinstance(item, Enum) else item): item for item in choices})
    if hints.is_union(hint):
        return _union([converter(member) for member in typing.get_args(hint)])
    if hints.is_dataclass(hint) or hints.is_typed_dict(hint):
        return _Fields(hint).convert
    if collection := hints.collection_of(hint):
        return _collection(*collection)
    return _anything


def _anything(value: Any) -> Any:
    return value


def _boolean(value: Any) -> bool:
    if value is True or value is False:
        return bool(value)
    raise Mismatch("Must be a boolean")


def _integer(value: Any) -> int:
    if type(value) is int:
        return value
    if type(value) is float and value.is_integer():  # JSON Schema calls 1.0 an integer, and so do callers
        return int(value)
    raise Mismatch("Must be an integer")


def _number(value: Any) -> float:
    if type(value) is float or type(value) is int:  # an int stays one: 1 + 2 is 3, not 3.0
        return value
    raise Mismatch("Must be a number")


def _string(value: Any) -> str:
    if isinstance(value, str):
        return value
    raise Mismatch("Must be a string")


def _nothing(value: Any) -> None:
    if value is not None:
        raise Mismatch("Must be null")


def _bytes(value: Any) -> bytes:
    try:
        return b64decode(_string(value), validate=True)
    except ValueError:
        raise Mismatch("Must be base64") from None


_SIMPLE: dict[Any, Convert] = {
    str: _string,
    int: _integer,
    float: _number,
    bool: _boolean,
    bytes: _bytes,
    None: _nothing,
    type(None): _nothing,
}


def _formatted(cls: Any, form: str) -> Convert:
    parse = cls if form == "uuid" else cls.fromisoformat

    def convert(value: Any) -> Any:
        try:
            return parse(_string(value))
        except ValueError:
            raise Mismatch(f"Must be a {form}") from None

    return convert


def _typed(value: Any) -> tuple[type, Any]:
    return (type(value), value)  # so that 1 is not True


def _choice(choices: dict[tuple[type, Any], Any]) -> Convert:
    def convert(value: Any) -> Any:
        try:
            return choices[_typed(value)]
        except (KeyError, TypeError):
            raise Mismatch("Must be one of the listed values") from None

    return convert


def _union(members: list[Convert]) -> Convert:
    def convert(value: Any) -> Any:
        reasons = []
        for member in members:
            try:
                return member(value)
            except Mismatch as mismatch:
                reasons.append(str(mismatch))
        raise Mismatch(" or ".join(dict.fromkeys(reasons)))

    return convert


def _collection(kind: str, arguments: tuple[Any, ...]) -> Convert:
    if kind == "dict":
        item = converter(arguments[1]) if arguments else _anything

        def convert_dict(value: Any) -> Any:
            if not isinstance(value, dict):
                raise Mismatch("Must be an object")
            return {key: _at(key, item, inner) for key, inner in value.items()}

        return convert_dict
    is_fixed = kind == "tuple" and bool(arguments) and arguments[-1] is not ...
    items = [converter(argument) for argument in arguments if argument is not ...] or [_anything]
    make = {"list": list, "set": set, "tuple": tuple}[kind]

    def convert_array(value: Any) -> Any:
        if not isinstance(value, list):
            raise Mismatch("Must be an array")
        if is_fixed and len(value) != len(items):
            raise Mismatch(f"Must be an array of {len(items)} items")
        try:
            return make(
                _at(number, items[number] if is_fixed else items[0], inner) for number, inner in enumerate(value)
            )
        except TypeError:
            raise Mismatch("Must be an array of simple values") from None

    return convert_array


class _Fields:
    """The converter of a dataclass or TypedDict: every key known, none missing, each value converted."""

    def __init__(self, cls: Any) -> None:
        known = hints.of_fields(cls)
        self._make: Any = cls if hints.is_dataclass(cls) else dict
        if hints.is_dataclass(cls):
            fields = [field for field in dataclasses.fields(cls) if field.init]
            missing = dataclasses.MISSING
            self._required = {f.name for f in fields if f.default is missing and f.default_factory is missing}
            self._converters = {field.name: converter(known[field.name]) for field in fields}
        else:
            self._required = {key for key, hint in known.items() if hints.is_required_key(cls, key, hint)}
            self._converters = {key: converter(hint) for key, hint in known.items()}

    def convert(self, value: Any) -> Any:
        if not isinstance(value, dict):
            raise Mismatch("Must be an object")
        if unknown := sorted(value.keys() - self._converters.keys()):
            raise Mismatch(f"Must not have the key {unknown[0][:100]!r}")
        if lacking := sorted(self._required - value.keys()):
            raise Mismatch(f"Must have the key {lacking[0]!r}")
        converted = {key: _at(key, self._converters[key], inner) for key, inner in value.items()}
        try:
            return self._make(**converted)
        except (TypeError, ValueError) as error:  # a __post_init__ that objects
            raise Mismatch(f"Must make a valid {self._make.__name__} ({type(error).__name__})") from error


def _at(key: Any, convert: Convert, value: Any) -> Any:
    try:
        return convert(value)
    except Mismatch as mismatch:
        raise Mismatch(f"{str(key)[:100]}: {mismatch}") from None
