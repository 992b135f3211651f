"""Examples: an object that a tool would take, made from its schema alone, for whoever sent one that it does not."""

from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from audit.references import followed
from execution.protocols.mcp.definitions import for_models
from registry.toolspec import ToolSpec

MAX_DEPTH = 6
MAX_TEXT = 200
MAX_PARTS = 500  # looked at for one example
_FORMATS = {
    "date": "2026-01-31",
    "time": "12:00:00Z",
    "date-time": "2026-01-31T12:00:00Z",
    "duration": "PT1H",
    "email": "someone@example.com",
    "hostname": "example.com",
    "ipv4": "192.0.2.1",
    "ipv6": "2001:db8::1",
    "uri": "https://example.com/",
    "uuid": "01234567-89ab-4cde-8f01-23456789abcd",
}


@lru_cache(maxsize=4_096)
def example(tool: ToolSpec) -> Mapping[str, Any] | None:
    """Arguments with everything that is required of a model and that the tool accepts; None if none was found."""
    try:
        made = _Maker(tool.input_schema).made(for_models(tool), 0)
    except _UNMAKEABLE:
        return None
    hidden = set(tool.non_inferrable)
    is_good = all(violation.parameter in hidden for violation in tool.input.violations(made))
    return made if isinstance(made, dict) and is_good else None


def arguments(schema: Mapping[str, Any]) -> dict[str, Any]:
    """The same of a schema alone, for people to start from; nothing where nothing simple fits it."""
    try:
        made = _Maker(schema).made(schema, 0)
    except _UNMAKEABLE:
        return {}
    return made if isinstance(made, dict) else {}


class _NothingFits(Exception):
    """A schema that no simple value keeps."""


_UNMAKEABLE = (
    _NothingFits,
    KeyError,
    ValueError,
    TypeError,
    ArithmeticError,
)  # also of vast numbers


class _Maker:
    """Makes the smallest telling value of a schema."""

    def __init__(self, root: Any) -> None:
        self._root = root
        self._looked_at = 0

    def made(self, schema: Any, depth: int) -> Any:
        self._looked_at += 1
        if depth > MAX_DEPTH or self._looked_at > MAX_PARTS or schema is False:
            raise _NothingFits
        if not isinstance(schema, dict):
            return "…"
        if "$ref" in schema:
            return self.made(followed(self._root, schema["$ref"]), depth + 1)
        for word in ("examples", "enum"):
            if isinstance(schema.get(word), list) and schema[word]:
                return schema[word][0]
        for word in ("const", "default"):
            if word in schema:
                return schema[word]
        for word in ("anyOf", "oneOf"):
            if isinstance(schema.get(word), list) and "type" not in schema:
                return self._first(schema[word], depth)
        return self._typed(schema, depth)

    def _first(self, options: list[Any], depth: int) -> Any:
        for option in options:
            try:
                return self.made(option, depth + 1)
            except _NothingFits:
                continue
        raise _NothingFits

    def _typed(self, schema: dict[str, Any], depth: int) -> Any:
        kind = schema.get("type", "object" if "properties" in schema else "string")
        if isinstance(kind, list):
            kind = kind[0]
        match kind:
            case "object":
                return self._object(schema, depth)
            case "array":
                length = max(1 if schema.get("maxItems", 1) else 0, schema.get("minItems", 0))
                items = schema.get("items", {"type": "string"})
                return [self.made(items, depth + 1) for _ in range(length)]
            case "integer" | "number":
                return _number(schema, kind)
            case "boolean":
                return True
            case "null":
                return None
        return _text(schema)

    def _object(self, schema: dict[str, Any], depth: int) -> dict[str, Any]:
        properties = schema.get("properties", {})
        return {name: self.made(properties.get(name, {"type": "string"}), depth + 1) for name in _wanted(schema)}


def _wanted(schema: dict[str, Any]) -> list[str]:
    """What is required; where nothing is, the first parameter, so that there is something to see."""
    required = list(schema.get("required", ()))
    return required or list(schema.get("properties", {}))[:1]


def _number(schema: dict[str, Any], kind: str) -> int | float:
    least, most = schema.get("minimum"), schema.get("maximum")
    if "exclusiveMinimum" in schema:
        least = schema["exclusiveMinimum"] + 1
    if "exclusiveMaximum" in schema:
        most = schema["exclusiveMaximum"] - 1
    step = schema.get("multipleOf")
    value: int | float = least if least is not None else most if most is not None else step if step else 1
    if step:
        value = -(-value // step) * step
    return int(value) if kind == "integer" or float(value).is_integer() else value


def _text(schema: dict[str, Any]) -> str:
    told = _FORMATS.get(schema.get("format", ""), "text")
    least, most = schema.get("minLength", 0), schema.get("maxLength", MAX_TEXT)
    if least > MAX_TEXT:
        raise _NothingFits
    return told.ljust(least, "x")[:most]
