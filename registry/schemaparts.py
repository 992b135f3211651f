"""The anatomy of a JSON Schema: which keywords hold schemas, and how a pattern weighs."""

from collections.abc import Iterator
from functools import lru_cache
from typing import Any

import jsonschema_rs

DIALECTS = frozenset({"https://json-schema.org/draft/2020-12/schema", "https://json-schema.org/draft/2020-12/schema#"})

# In place: the schema inside judges the same value as the schema around it.
IN_PLACE_ONE = ("not", "if", "then", "else")
IN_PLACE_LISTS = ("allOf", "anyOf", "oneOf")
IN_PLACE_MAPS = ("dependentSchemas",)
# Below: the schema inside judges a part of the value.
BELOW_ONE = (
    "additionalProperties",
    "unevaluatedProperties",
    "propertyNames",
    "items",
    "contains",
    "unevaluatedItems",
    "contentSchema",
)
BELOW_LISTS = ("prefixItems",)
BELOW_MAPS = ("properties", "patternProperties")
SHELVES = ("$defs", "definitions")  # judge nothing until a $ref asks for them
# What judges nothing ever.
NOTES = frozenset({"$schema", "$anchor", "$comment", "title", "description", "default", *SHELVES}) | {
    *("examples", "deprecated", "readOnly", "writeOnly")
}

MAX_PATTERN = 1 << 20  # bytes of a compiled pattern
_SMALL_PATTERN = 1200  # so few states that the matcher never runs out of its cache
_PATTERN_SIZES = (_SMALL_PATTERN, *(1 << power for power in range(11, 21)))


def subschemas(schema: dict[str, Any]) -> Iterator[tuple[str, Any]]:
    """Every schema directly inside a schema, with its JSON pointer below it."""
    for keyword in (*IN_PLACE_ONE, *BELOW_ONE):
        if keyword in schema:
            yield f"/{keyword}", schema[keyword]
    for keyword in (*IN_PLACE_LISTS, *BELOW_LISTS):
        if isinstance(schema.get(keyword), list):
            yield from ((f"/{keyword}/{index}", part) for index, part in enumerate(schema[keyword]))
    for keyword in (*IN_PLACE_MAPS, *BELOW_MAPS, *SHELVES):
        if isinstance(schema.get(keyword), dict):
            yield from ((f"/{keyword}/{escaped(name)}", part) for name, part in schema[keyword].items())


def in_place(schema: dict[str, Any]) -> Iterator[tuple[str, Any]]:
    """Every schema inside one that judges the same value, with its keyword; `$ref` left aside."""
    for keyword in IN_PLACE_ONE:
        if keyword in schema:
            yield keyword, schema[keyword]
    for keyword in IN_PLACE_LISTS:
        yield from ((keyword, part) for part in schema.get(keyword, ()))
    for keyword in IN_PLACE_MAPS:
        yield from ((keyword, part) for part in schema.get(keyword, {}).values())


def as_object(schema: Any) -> Any:
    """The same schema without the short forms `true`, which is {}, and `false`; rows of earlier days may hold them."""
    return ({} if schema else {"not": {}}) if isinstance(schema, bool) else schema


def escaped(name: str) -> str:
    """A name as one step of a JSON pointer."""
    return name.replace("~", "~0").replace("/", "~1")


def validator(schema: Any, registry: jsonschema_rs.Registry | None = None) -> jsonschema_rs.Draft202012Validator:
    """A compiled schema that reaches for nothing outside itself and matches patterns in linear time."""
    return jsonschema_rs.Draft202012Validator(
        schema,
        validate_formats=True,
        retriever=None if registry else _deny,
        registry=registry,
        pattern_options=jsonschema_rs.RegexOptions(size_limit=MAX_PATTERN, dfa_size_limit=2 * MAX_PATTERN),
    )


@lru_cache(maxsize=4096)
def pattern_cost(pattern: str) -> float | None:
    """Nanoseconds a pattern may need for each byte of a text, at worst; None if the engine refuses it.

    Matching is linear in the text, but its slope grows with the compiled pattern: counted repetitions are unrolled.
    """
    for size in _PATTERN_SIZES:
        options = jsonschema_rs.RegexOptions(size_limit=size, dfa_size_limit=2 * MAX_PATTERN)
        try:
            jsonschema_rs.Draft202012Validator({"pattern": pattern}, pattern_options=options)
        except ValueError:
            continue
        return 12.0 if size == _SMALL_PATTERN else 250 + 0.08 * size
    return None


def _deny(uri: str) -> Any:
    raise ValueError("a schema refers only to itself")
