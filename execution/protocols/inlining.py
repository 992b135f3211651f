"""Inlining: a JSON Schema without references, for readers who must not be sent any."""

from typing import Any

from audit.references import followed

MAX_DEPTH = 64  # levels of schema in schema
MAX_INLINED = 500  # references followed in one schema; a schema can be small and its expansion endless
_ONE = frozenset(
    {
        "additionalItems",
        "additionalProperties",
        "contains",
        "contentSchema",
        "else",
        "if",
        "items",
        "not",
        "propertyNames",
        "then",
        "unevaluatedItems",
        "unevaluatedProperties",
    }
)
_MAP = frozenset({"dependencies", "dependentSchemas", "patternProperties", "properties"})
_LIST = frozenset({"allOf", "anyOf", "items", "oneOf", "prefixItems"})
_DROPPED = frozenset({"$anchor", "$defs", "$dynamicAnchor", "$dynamicRef", "$id", "$ref", "definitions"})
_NOTES = frozenset({"default", "deprecated", "description", "examples", "readOnly", "title", "writeOnly"})


def without_refs(schema: Any) -> Any:
    """The same schema with every local reference replaced by what it means.

    A schema that contains itself has no such form: where it would begin again it becomes the wider "anything of that
    type", so what we accept is still described. The full schema keeps deciding what is valid.
    """
    return _Inliner(schema).inlined(schema, (), 0)


class _Inliner:
    def __init__(self, root: Any) -> None:
        self.root = root
        self.followed = 0

    def inlined(self, schema: Any, inside: tuple[str, ...], depth: int) -> Any:
        if not isinstance(schema, dict):
            return schema
        if depth > MAX_DEPTH:
            return {}
        own = {
            key: self._keyword(key, value, inside, depth + 1) for key, value in schema.items() if key not in _DROPPED
        }
        ref = schema.get("$ref", schema.get("$dynamicRef"))
        if not isinstance(ref, str):
            return own
        meant = self._meant(ref, inside, depth + 1)
        if not isinstance(meant, dict):
            return {**own, "not": {}} if meant is False else own
        if own.keys() <= _NOTES:
            return {**meant, **own}
        return {**own, "allOf": [meant, *own.get("allOf", [])]}

    def _keyword(self, key: str, value: Any, inside: tuple[str, ...], depth: int) -> Any:
        if key in _MAP and isinstance(value, dict):
            return {name: self.inlined(each, inside, depth) for name, each in value.items()}
        if key in _LIST and isinstance(value, list):
            return [self.inlined(each, inside, depth) for each in value]
        return self.inlined(value, inside, depth) if key in _ONE else value

    def _meant(self, ref: str, inside: tuple[str, ...], depth: int) -> Any:
        target = _pointed(self.root, ref)
        self.followed += 1
        if ref in inside or self.followed > MAX_INLINED:
            return {"type": target["type"]} if isinstance(target, dict) and "type" in target else {}
        return self.inlined(target, (*inside, ref), depth)


def _pointed(root: Any, ref: str) -> Any:
    """What a local JSON pointer names; anything at all if it names nothing."""
    try:
        return followed(root, ref)
    except KeyError:
        return True


def described(schema: dict[str, Any]) -> dict[str, Any]:
    """The same schema, every parameter of it with a description: its own, else its title, else its name."""
    properties = schema.get("properties")
    if not isinstance(properties, dict):
        return schema
    return {**schema, "properties": {name: _described(name, each) for name, each in properties.items()}}


def _described(name: str, schema: Any) -> dict[str, Any]:
    own: dict[str, Any] = schema if isinstance(schema, dict) else {"not": {}} if schema is False else {}
    if isinstance(own.get("description"), str) and own["description"]:
        return own
    title = own.get("title")
    return {**own, "description": title if isinstance(title, str) and title else name}
