"""Type hints to JSON Schema 2020-12: what a function takes and gives, told to those who call it."""

import dataclasses
import inspect
import typing
from collections.abc import Callable, Mapping
from enum import Enum, Flag
from typing import Any

from placet import docstrings, hints
from placet.answers import BadResult, to_json
from placet.errors import ToolkitError

Schema = dict[str, Any]

_SIMPLE: dict[Any, Schema] = {
    str: {"type": "string"},
    int: {"type": "integer"},
    float: {"type": "number"},
    bool: {"type": "boolean"},
    bytes: {"type": "string", "contentEncoding": "base64"},
    None: {"type": "null"},
    type(None): {"type": "null"},
    Any: {},
    object: {},
}
_JSON_TYPES = {str: "string", int: "integer", float: "number", bool: "boolean", type(None): "null"}


def input_schema(function: Callable[..., Any]) -> Schema:
    """The schema of a function's arguments; the ToolContext is no part of it."""
    known = hints.of_function(function)
    _, told = docstrings.read(function.__doc__)
    properties: dict[str, Schema] = {}
    required: list[str] = []
    for name, parameter in inspect.signature(function).parameters.items():
        where = f"parameter {name!r}"
        if parameter.kind not in (parameter.POSITIONAL_OR_KEYWORD, parameter.KEYWORD_ONLY):
            raise ToolkitError(f"{where} cannot be given by name")
        if name not in known:
            raise ToolkitError(f"{where} has no type hint")
        if hints.is_context(known[name]):
            continue
        schema = schema_of(known[name], where)
        if name in told and "description" not in schema:
            schema["description"] = told[name]
        if parameter.default is parameter.empty:
            required.append(name)
        else:
            _add_default(schema, parameter.default, known[name], where)
        properties[name] = schema
    return _object(properties, required)


def output_schema(function: Callable[..., Any]) -> tuple[bool, Schema | None]:
    """Whether the function promises an output at all, and its schema; None means that it gives nothing."""
    known = hints.of_function(function)
    if "return" not in known:
        return False, None
    hint, _ = hints.unwrap(known["return"])
    if hint is None or hint is type(None):
        return True, None
    if hints.is_content(hint):
        return False, None
    schema = schema_of(known["return"], "the return value", is_output=True)
    return (True, schema) if schema else (False, None)


def schema_of(hint: Any, where: str, *, is_output: bool = False, inside: tuple[Any, ...] = ()) -> Schema:
    """The schema of one hint. `where` names the place in errors; `inside` holds the types around it."""
    hint, notes = hints.unwrap(hint)
    schema = dict(_plain(hint, where, is_output, inside))
    for note in notes:
        if isinstance(note, str):
            schema["description"] = note
        elif isinstance(note, Mapping):
            schema.update(note)
    return schema


def _plain(hint: Any, where: str, is_output: bool, inside: tuple[Any, ...]) -> Schema:
    if _is_hashable(hint) and hint in _SIMPLE:
        return _SIMPLE[hint]
    if form := hints.format_of(hint):
        return {"type": "string", "format": form}
    if any(hint is outer for outer in inside):
        names = " -> ".join(hints.name_of(outer) for outer in (*inside, hint))
        raise ToolkitError(f"{where}: the type contains itself ({names}); a schema without references cannot say that")
    if hints.is_enum(hint):
        return _enum(hint, where)
    if typing.get_origin(hint) is typing.Literal:
        return _choices([_value(choice) for choice in typing.get_args(hint)], where)

    def inner(part: Any, place: str) -> Schema:
        return schema_of(part, place, is_output=is_output, inside=(*inside, hint))

    if hints.is_union(hint):
        members = [inner(member, where) for member in typing.get_args(hint)]
        return {"anyOf": [member for number, member in enumerate(members) if member not in members[:number]]}
    if hints.is_dataclass(hint):
        return _dataclass(hint, where, is_output, inner)
    if hints.is_typed_dict(hint):
        return _typed_dict(hint, where, inner)
    if collection := hints.collection_of(hint):
        return _collection(*collection, where, inner)
    raise ToolkitError(f"{where}: the type {hints.name_of(hint)} has no JSON form")


def _collection(kind: str, arguments: tuple[Any, ...], where: str, inner: Callable[[Any, str], Schema]) -> Schema:
    if kind == "dict":
        if not arguments:
            return {"type": "object"}
        if hints.unwrap(arguments[0])[0] is not str:
            raise ToolkitError(f"{where}: the keys of a JSON object are texts, not {hints.name_of(arguments[0])}")
        values = inner(arguments[1], f"{where}, values")
        return {"type": "object", "additionalProperties": values} if values else {"type": "object"}
    if kind == "tuple" and not (len(arguments) == 2 and arguments[1] is ...):
        if not arguments:
            return {"type": "array"}
        items = [inner(argument, f"{where}, item {number}") for number, argument in enumerate(arguments)]
        return {"type": "array", "prefixItems": items, "items": False, "minItems": len(items), "maxItems": len(items)}
    schema: Schema = {"type": "array"}
    if arguments and (items_schema := inner(arguments[0], f"{where}, items")):
        schema["items"] = items_schema
    if kind == "set":
        schema["uniqueItems"] = True
    return schema


def _dataclass(cls: Any, where: str, is_output: bool, inner: Callable[[Any, str], Schema]) -> Schema:
    known = hints.of_fields(cls)
    properties: dict[str, Schema] = {}
    required: list[str] = []
    for field in dataclasses.fields(cls):
        if not field.init and not is_output:
            continue
        place = f"{where}, field {field.name!r} of {cls.__name__}"
        schema = inner(known[field.name], place)
        has_default = field.default is not dataclasses.MISSING
        if is_output or not (has_default or field.default_factory is not dataclasses.MISSING):
            required.append(field.name)
        elif has_default:
            _add_default(schema, field.default, known[field.name], place)
        properties[field.name] = schema
    return _object(properties, required)


def _typed_dict(cls: Any, where: str, inner: Callable[[Any, str], Schema]) -> Schema:
    known = hints.of_fields(cls)
    properties = {key: inner(hint, f"{where}, key {key!r} of {cls.__name__}") for key, hint in known.items()}
    return _object(properties, [key for key, hint in known.items() if hints.is_required_key(cls, key, hint)])


def _object(properties: dict[str, Schema], required: list[str]) -> Schema:
    schema: Schema = {"type": "object", "properties": properties}
    if required:
        schema["required"] = required
    schema["additionalProperties"] = False
    return schema


def _enum(cls: type[Enum], where: str) -> Schema:
    if issubclass(cls, Flag):
        raise ToolkitError(f"{where}: {cls.__name__} is a Flag, and flags have no JSON form")
    if not len(cls):
        raise ToolkitError(f"{where}: {cls.__name__} has no members")
    return _choices([member.value for member in cls], where)


def _choices(values: list[Any], where: str) -> Schema:
    kinds = {type(value) for value in values}
    if not kinds <= _JSON_TYPES.keys():
        wrong = next(value for value in values if type(value) not in _JSON_TYPES)
        raise ToolkitError(f"{where}: {wrong!r} cannot be a choice, it is no JSON text, number, boolean or null")
    return {"type": _JSON_TYPES[kinds.pop()], "enum": values} if len(kinds) == 1 else {"enum": values}


def _add_default(schema: Schema, default: Any, hint: Any, where: str) -> None:
    if default is None and not _takes_none(hint):
        raise ToolkitError(f"{where} is None by default, but its type does not say so: write `... | None`")
    try:
        schema["default"] = to_json(default)
    except BadResult:
        return  # A default that only Python can express is no part of the schema.


def _takes_none(hint: Any) -> bool:
    hint, _ = hints.unwrap(hint)
    if hints.is_union(hint):
        return any(_takes_none(member) for member in typing.get_args(hint))
    return hint in (None, type(None), Any, object) or None in typing.get_args(hint)


def _value(choice: Any) -> Any:
    return choice.value if isinstance(choice, Enum) else choice


def _is_hashable(hint: Any) -> bool:
    try:
        hash(hint)
    except TypeError:
        return False
    return True
