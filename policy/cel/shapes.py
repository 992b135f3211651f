"""Shape: what is known about a value before there is one."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from policy.cel.alternatives import (
    KINDS,
    NUMBERS,
    Alternative,
    Bound,
    Part,
    alternatives,
    item_parts,
    kinds,
    limit,
    values,
)

WORDS = {
    "bool": "true or false",
    "int": "a whole number",
    "double": "a decimal number",
    "text": "a text",
    "null": "null",
    "list": "a list",
    "map": "an object",
    "timestamp": "a moment",
    "duration": "a duration",
}


class Shape:
    """A value that fits at least one of some alternatives."""

    def __init__(self, parts: Iterable[Part]) -> None:
        self.parts = tuple(parts)

    @cached_property
    def alternatives(self) -> tuple[Alternative, ...]:
        return alternatives(self.parts)

    @cached_property
    def kinds(self) -> frozenset[str]:
        """Every kind of value that it can be."""
        return frozenset[str]().union(*(kinds(each) for each in self.alternatives))

    @property
    def is_anything(self) -> bool:
        return self.kinds == KINDS

    def may_be(self, *wanted: str) -> bool:
        return not self.kinds.isdisjoint(wanted)

    @property
    def words(self) -> str:
        """The kinds in words: "a text or null"."""
        names = ["a number"] if self.kinds >= NUMBERS else []
        names += [word for kind, word in WORDS.items() if kind in self.kinds and not (names and kind in NUMBERS)]
        return "anything" if self.is_anything else " or ".join(names) or "nothing"

    @cached_property
    def values(self) -> list[Any] | None:
        """The only values it can have, where the schemas list them."""
        found: list[Any] = []
        for each in self.alternatives:
            listed = values(each)
            if listed is None:
                return None
            found += listed
        return found

    @cached_property
    def bounds(self) -> tuple[Bound | None, Bound | None]:
        """The least and the greatest number it can be, where every alternative has a limit."""
        numeric = [each for each in self.alternatives if not kinds(each).isdisjoint(NUMBERS)]
        lows = [limit(each, "minimum", "exclusiveMinimum", max) for each in numeric]
        highs = [limit(each, "maximum", "exclusiveMaximum", min) for each in numeric]
        low = min((bound for bound in lows if bound), key=lambda bound: (bound.value, bound.is_open), default=None)
        high = max(
            (bound for bound in highs if bound), key=lambda bound: (bound.value, not bound.is_open), default=None
        )
        return low if all(lows) else None, high if all(highs) else None

    @cached_property
    def items(self) -> "Shape":
        """What a macro's variable stands for: an item of a list, a key of a map."""
        found: list[Part] = []
        for each in self.alternatives:
            found += [Part({"type": "string"})] if "map" in kinds(each) else []
            found += item_parts(each) if "list" in kinds(each) else []
        return Shape(found)

    def field(self, name: str) -> "Field | None":
        """What is known of a field; None if no alternative has it."""
        known = [field for each in self.alternatives if "map" in kinds(each) and (field := _field(each, name))]
        if not known:
            return None
        return Field(
            shape=Shape(part for field in known for part in field.shape.parts),
            is_required=len(known) == len(self.alternatives) and all(field.is_required for field in known),
            is_declared=any(field.is_declared for field in known),
        )

    @cached_property
    def field_names(self) -> list[str]:
        """The declared fields."""
        return sorted(
            {name for each in self.alternatives for part in each for name in part.schema.get("properties", ())}
        )


@dataclass(frozen=True, slots=True)
class Field:
    """A field of an object: its shape, whether it is always there, whether a schema describes the object's fields."""

    shape: Shape
    is_required: bool
    is_declared: bool


def of_schemas(schemas: Iterable[Mapping[str, Any]]) -> Shape:
    """What fits at least one of these schemas."""
    return Shape(Part(schema, schema) for schema in schemas)


def of_kinds(*wanted: str) -> Shape:
    """Any value of these kinds."""
    return Shape([Part({}, kinds=frozenset(wanted))])


def union(*shapes: Shape) -> Shape:
    return Shape(part for shape in shapes for part in shape.parts)


def list_of(items: Shape) -> Shape:
    return Shape([Part({"type": "array"}, items=items.parts)])


ANYTHING = Shape([Part({})])


def _field(alternative: Alternative, name: str) -> Field | None:
    """A field of one alternative: declared, left open, or not there at all."""
    declared: list[Part] = []
    is_described = False
    is_open = False
    for part in alternative:
        properties, rest = part.schema.get("properties", {}), part.schema.get("additionalProperties")
        is_described = is_described or bool(properties) or rest is not None or "patternProperties" in part.schema
        if name in properties:
            declared.append(Part(properties[name], part.root))
        elif isinstance(rest, dict):
            declared.append(Part(rest, part.root))
        else:
            is_open = is_open or rest is True or "patternProperties" in part.schema
    is_required = any(name in part.schema.get("required", ()) for part in alternative)
    if declared:
        together = (
            declared[0] if len(declared) == 1 else Part({"allOf": [each.schema for each in declared]}, declared[0].root)
        )
        return Field(Shape([together]), is_required, True)
    if is_open or is_required or not is_described:
        return Field(ANYTHING, is_required, is_described)
    return None
