"""Schema marks: what a tool's JSON Schema says about which of its values are secret, and which only look so."""

from collections.abc import Iterator, Mapping
from typing import Any

from audit.references import followed

Schema = Mapping[str, Any]

_ALTERNATIVES = ("allOf", "anyOf", "oneOf")
_BRANCHES = ("if", "then", "else", "$ref", "$dynamicRef")
_MAX_REMEMBERED = 2_000

# By identity, holding the schema so that the identity stays its own: published schemas live long and never change.
_remembered: dict[int, tuple[Schema, bool]] = {}


class SchemaMarks:
    """The schemas that apply to one place in a value, read in parallel with the value."""

    __slots__ = ("_root", "_schemas")

    def __init__(self, root: Schema, schemas: tuple[Schema, ...]) -> None:
        self._root = root
        self._schemas = schemas

    @classmethod
    def of(cls, schema: Schema | None) -> "SchemaMarks | None":
        """The marks of a schema, or None if it has none: then there is nothing to walk along."""
        if not schema:
            return None
        known = _remembered.get(id(schema))
        if known is None:
            if len(_remembered) >= _MAX_REMEMBERED:
                _remembered.clear()
            known = _remembered[id(schema)] = (schema, _mentions_a_mark(schema))
        return cls(schema, tuple(_expanded(schema, schema, set()))) if known[1] else None

    @property
    def is_secret(self) -> bool:
        """The value is secret whatever its name."""
        return any(
            schema.get("writeOnly") is True or schema.get("format") == "password" or schema.get("x-secret") is True
            for schema in self._schemas
        )

    @property
    def is_plain(self) -> bool:
        """The value is no secret although its name sounds like one."""
        return any(schema.get("x-audit") == "plain" for schema in self._schemas)

    def under(self, key: str) -> "SchemaMarks":
        """The marks of the value under one key of an object."""
        return self._down(child for schema in self._schemas for child in _properties(schema, key))

    def at(self, index: int) -> "SchemaMarks":
        """The marks of one item of an array."""
        return self._down(child for schema in self._schemas for child in _items(schema, index))

    def into(self, step: str) -> "SchemaMarks":
        """The marks of one step down, where it is not known whether that is a key or an index: those of both."""
        under = self.under(step)
        if not step.isdecimal():
            return under
        return SchemaMarks(self._root, under._schemas + self.at(int(step))._schemas)

    def _down(self, children: Iterator[Any]) -> "SchemaMarks":
        found = (schema for child in children for schema in _expanded(child, self._root, set()))
        return SchemaMarks(self._root, tuple(found))


def _properties(schema: Schema, key: str) -> Iterator[Any]:
    own = schema.get("properties")
    is_named = isinstance(own, Mapping) and key in own
    if isinstance(own, Mapping) and is_named:
        yield own[key]
    patterns = schema.get("patternProperties")
    if isinstance(patterns, Mapping):
        # Running a foreign pattern here could take for ever; a mark that may apply is taken to apply.
        yield from patterns.values()
    if not is_named:
        yield schema.get("additionalProperties")
        yield schema.get("unevaluatedProperties")


def _items(schema: Schema, index: int) -> Iterator[Any]:
    prefix = schema.get("prefixItems")
    if isinstance(prefix, list) and index < len(prefix):
        yield prefix[index]
    else:
        yield schema.get("items")
        yield schema.get("unevaluatedItems")
    yield schema.get("contains")


def _expanded(schema: Any, root: Schema, seen: set[int]) -> Iterator[Schema]:
    """A schema and all that speak about the same value through references and alternatives."""
    if not isinstance(schema, Mapping) or id(schema) in seen:
        return
    seen.add(id(schema))
    yield schema
    for word in _BRANCHES:
        child = schema.get(word)
        if child is not None:
            yield from _expanded(_target(root, child) if isinstance(child, str) else child, root, seen)
    for word in _ALTERNATIVES:
        children = schema.get(word)
        for child in children if isinstance(children, list) else ():
            yield from _expanded(child, root, seen)


def _target(root: Schema, reference: str) -> Any:
    """What a local reference points at; anything else is nothing, since no schema of ours reaches outside itself."""
    try:
        return followed(root, reference)
    except KeyError:
        return None


def _mentions_a_mark(node: Any) -> bool:
    if isinstance(node, Mapping):
        if node.get("writeOnly") is True or node.get("format") == "password":
            return True
        return "x-secret" in node or "x-audit" in node or any(map(_mentions_a_mark, node.values()))
    return isinstance(node, list) and any(map(_mentions_a_mark, node))
