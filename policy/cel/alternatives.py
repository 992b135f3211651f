"""Alternatives: a JSON Schema spread into the cases a value can be, its references followed and its unions opened."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from audit.references import followed

MAX_ALTERNATIVES = 64
_MAX_VALUES = 500
_MAX_STEPS = 200  # schemas looked at for one spreading

KINDS = frozenset({"bool", "int", "double", "text", "null", "list", "map", "timestamp", "duration"})
NUMBERS = frozenset({"int", "double"})
_OF_TYPES = {
    "string": frozenset({"text"}),
    "integer": frozenset({"int"}),
    "number": NUMBERS,
    "boolean": frozenset({"bool"}),
    "null": frozenset({"null"}),
    "array": frozenset({"list"}),
    "object": frozenset({"map"}),
}


@dataclass(frozen=True, slots=True)
class Part:
    """A schema and the document that its references lead through, with what JSON Schema has no word for."""

    schema: Any
    root: Any = None
    kinds: frozenset[str] = KINDS
    items: tuple["Part", ...] = ()


Alternative = tuple[Part, ...]  # schemas that hold together


@dataclass(frozen=True, slots=True)
class Bound:
    """An end of a range; open if the value itself lies outside."""

    value: Any
    is_open: bool


class TooMany(Exception):
    """The schema branches more than is worth following."""


def alternatives(parts: tuple[Part, ...]) -> tuple[Alternative, ...]:
    """The cases that fit at least one of the parts; one case of which nothing is known if they are too many."""
    steps = [0]
    try:
        found = [made for part in parts for made in _spread(part, steps) if kinds(made)]
    except TooMany:
        return ((),)
    return tuple(found) if len(found) <= MAX_ALTERNATIVES else ((),)


def _spread(part: Part, steps: list[int]) -> Iterator[Alternative]:
    """The alternatives of one schema; a schema that nothing fits has none."""
    steps[0] += 1
    if steps[0] > _MAX_STEPS:
        raise TooMany
    schema = part.schema
    if schema is False:
        return
    if not isinstance(schema, dict):
        yield ()
        return
    made: list[Alternative] = [(part,)]
    for choices in _conjuncts(part):
        spread = [each for choice in choices for each in _spread(choice, steps)]
        made = [(*one, *other) for one in made for other in spread]
        if len(made) > MAX_ALTERNATIVES:
            raise TooMany
    yield from made


def _conjuncts(part: Part) -> Iterator[list[Part]]:
    """What holds besides the schema's own words: of each list, at least one."""
    schema, root = part.schema, part.root
    reference = schema.get("$ref")
    if isinstance(reference, str):
        try:
            yield [Part(followed(root, reference), root)]
        except KeyError:
            yield [Part({}, root)]
    for one in schema.get("allOf", ()):
        yield [Part(one, root)]
    for keyword in ("anyOf", "oneOf"):
        if keyword in schema:
            yield [Part(one, root) for one in schema[keyword]]


def kinds(alternative: Alternative) -> frozenset[str]:
    """Every kind of value that fits all parts."""
    left = KINDS
    for part in alternative:
        schema = part.schema
        left = left & part.kinds
        if "type" in schema:
            types = schema["type"] if isinstance(schema["type"], list) else [schema["type"]]
            left = left & frozenset(kind for each in types for kind in _kinds_of_type(each))
        listed = _own_values(schema)
        if listed is not None:
            left = left & frozenset(kind for value in listed for kind in _kinds_of_value(value))
    return left


def _kinds_of_type(name: object) -> frozenset[str]:
    return _OF_TYPES.get(str(name), KINDS)


def _kinds_of_value(value: Any) -> frozenset[str]:
    match value:
        case bool():
            return frozenset({"bool"})
        case int() | float():
            return NUMBERS  # JSON's 5 and 5.0 are one number, and either may be sent
        case str():
            return frozenset({"text"})
        case None:
            return frozenset({"null"})
        case list():
            return frozenset({"list"})
        case _:
            return frozenset({"map"})


def _own_values(schema: Mapping[str, Any]) -> list[Any] | None:
    if "const" in schema:
        return [schema["const"]]
    listed = schema.get("enum")
    return listed if isinstance(listed, list) else None


def values(alternative: Alternative) -> list[Any] | None:
    """The values all parts of an alternative list; None if none of them lists any, or too many to try each."""
    lists = [listed for part in alternative if (listed := _own_values(part.schema)) is not None]
    if any(len(listed) > _MAX_VALUES for listed in lists):
        return None
    if not lists:
        return [True, False] if kinds(alternative) == {"bool"} else None
    return [value for value in lists[0] if all(any(_same(value, one) for one in other) for other in lists[1:])]


def _same(one: Any, other: Any) -> bool:
    return isinstance(one, bool) == isinstance(other, bool) and bool(one == other)


def limit(alternative: Alternative, closed: str, opened: str, strictest: Any) -> Bound | None:
    """The strictest of the limits that the parts set by two keywords."""
    found = [
        Bound(part.schema[word], word == opened)
        for part in alternative
        for word in (closed, opened)
        if isinstance(part.schema.get(word), int | float)
    ]
    if not found:
        return None
    value = strictest(bound.value for bound in found)
    return Bound(value, any(bound.is_open for bound in found if bound.value == value))


def item_parts(alternative: Alternative) -> list[Part]:
    """What an item of a list can be."""
    for part in alternative:
        schema = part.schema
        if part.items:
            return list(part.items)
        firsts = schema.get("prefixItems", [])
        if "items" in schema or firsts:
            return [Part(each, part.root) for each in (*firsts, schema.get("items", {}))]
    return [Part({})]
