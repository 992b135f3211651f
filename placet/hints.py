"""What a type hint is: one look shared by those who describe values and those who convert them."""

import dataclasses
import types
import typing
from collections.abc import Callable
from enum import Enum
from typing import Any

from placet.content import CONTENT_TYPES
from placet.context import ToolContext
from placet.errors import ToolkitError

# Named rather than imported, so that a host whose tools need none of them does not load them.
FORMATS = {
    "datetime.datetime": "date-time",
    "datetime.date": "date",
    "datetime.time": "time",
    "uuid.UUID": "uuid",
}
LISTS = {"list", "Sequence", "MutableSequence", "Collection", "Iterable"}
SETS = {"set", "frozenset", "Set", "MutableSet"}
MAPPINGS = {"dict", "Mapping", "MutableMapping"}


def of_function(function: Callable[..., Any]) -> dict[str, Any]:
    """The hints of a function's parameters and of its `return`, with `Annotated` kept."""
    try:
        return typing.get_type_hints(function, include_extras=True)
    except Exception as error:
        raise ToolkitError(f"a type hint cannot be read: {type(error).__name__}: {error}") from error


def of_fields(cls: type) -> dict[str, Any]:
    """The hints of a dataclass's or TypedDict's fields."""
    try:
        return typing.get_type_hints(cls, include_extras=True)
    except Exception as error:
        raise ToolkitError(f"a type hint of {cls.__name__} cannot be read: {type(error).__name__}: {error}") from error


def unwrap(hint: Any) -> tuple[Any, list[Any]]:
    """Takes off Annotated, Required, NotRequired, NewType and named aliases; gives the hint and its notes."""
    notes: list[Any] = []
    while True:
        origin = typing.get_origin(hint)
        if origin is typing.Annotated:
            notes = [*hint.__metadata__, *notes]
            hint = hint.__origin__
        elif origin is typing.Required or origin is typing.NotRequired:
            hint = typing.get_args(hint)[0]
        elif isinstance(hint, typing.NewType):
            hint = hint.__supertype__
        elif type(hint).__name__ == "TypeAliasType":
            hint = hint.__value__
        else:
            return hint, notes


def is_union(hint: Any) -> bool:
    return typing.get_origin(hint) in (typing.Union, types.UnionType)


def is_enum(hint: Any) -> bool:
    return isinstance(hint, type) and issubclass(hint, Enum)


def is_typed_dict(hint: Any) -> bool:
    return isinstance(hint, type) and issubclass(hint, dict) and hasattr(hint, "__required_keys__")


def is_dataclass(hint: Any) -> bool:
    return isinstance(hint, type) and dataclasses.is_dataclass(hint)


def is_required_key(cls: Any, key: str, hint: Any) -> bool:
    """Whether a TypedDict demands a key; the marks in the hint win, for they survive postponed annotations."""
    while typing.get_origin(hint) is typing.Annotated:
        hint = hint.__origin__
    origin = typing.get_origin(hint)
    if origin is typing.Required or origin is typing.NotRequired:
        return origin is typing.Required
    return key in cls.__required_keys__


def format_of(hint: Any) -> str | None:
    return FORMATS.get(f"{hint.__module__}.{hint.__qualname__}") if isinstance(hint, type) else None


def collection_of(hint: Any) -> tuple[str, tuple[Any, ...]] | None:
    """("list" | "set" | "dict" | "tuple", its arguments), or None if the hint is no collection."""
    origin = typing.get_origin(hint) or hint
    name = getattr(origin, "__name__", "") if getattr(origin, "__module__", "") in _COLLECTION_MODULES else ""
    kinds = ((LISTS, "list"), (SETS, "set"), (MAPPINGS, "dict"), ({"tuple"}, "tuple"))
    for names, kind in kinds:
        if name in names:
            return kind, typing.get_args(hint)
    return None


_COLLECTION_MODULES = {"builtins", "collections.abc", "typing"}


def is_context(hint: Any) -> bool:
    """Whether a parameter asks for the ToolContext, alone or as an option."""
    hint, _ = unwrap(hint)
    return hint is ToolContext or (is_union(hint) and ToolContext in typing.get_args(hint))


def is_content(hint: Any) -> bool:
    """Whether a return hint promises content rather than a value, alone, in a list, or as one of several."""
    hint, _ = unwrap(hint)
    if is_union(hint):
        return any(is_content(member) for member in typing.get_args(hint))
    collection = collection_of(hint)
    if collection and collection[0] in ("list", "tuple"):
        return any(is_content(member) for member in collection[1] if member is not ...)
    return hint in CONTENT_TYPES


def name_of(hint: Any) -> str:
    return hint.__qualname__ if isinstance(hint, type) and not typing.get_args(hint) else str(hint)
