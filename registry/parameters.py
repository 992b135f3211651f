"""An input schema as a table that a person can read."""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Any

from audit.references import followed

MAX_ROWS = 200
MAX_DEPTH = 3
_BOUNDS = {
    "minimum": "at least {}",
    "exclusiveMinimum": "more than {}",
    "maximum": "at most {}",
    "exclusiveMaximum": "less than {}",
    "minLength": "at least {} characters",
    "maxLength": "at most {} characters",
    "minItems": "at least {} items",
    "maxItems": "at most {} items",
    "pattern": "matches {}",
    "format": "as {}",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Parameter:
    """One line of the table."""

    name: str  # dotted where it lies inside another one
    type: str
    is_required: bool
    is_inferrable: bool
    description: str
    limits: str


def parameters(schema: Any, non_inferrable: list[str] | None = None) -> list[Parameter]:
    """The parameters of an input schema in their order, nested ones below their parent; bounded in number."""
    return list(islice(_rows(schema, schema, "", set(non_inferrable or ()), 0), MAX_ROWS))


def limits_of(schema: Any) -> str:
    """What a value must keep beside its type, in a few words."""
    told = schema if isinstance(schema, dict) else {}
    limits = [form.format(_short(told[word])) for word, form in _BOUNDS.items() if word in told]
    if "default" in told:
        limits.append(f"{_short(told['default'])} if absent")
    return ", ".join(limits)


def type_of(schema: Any) -> str:
    """A schema's type in a few words."""
    if not isinstance(schema, dict):
        return "anything" if schema is not False else "nothing"
    if "const" in schema:
        return f"exactly {_short(schema['const'])}"
    if isinstance(schema.get("enum"), list):
        return (
            "one of "
            + ", ".join(_short(choice) for choice in schema["enum"][:8])
            + (", …" if len(schema["enum"]) > 8 else "")
        )
    for word in ("anyOf", "oneOf"):
        if isinstance(schema.get(word), list):
            return " or ".join(type_of(choice) for choice in schema[word][:4])
    kind = schema.get("type", "anything")
    if isinstance(kind, list):
        return " or ".join(map(str, kind))
    if kind == "array" and "items" in schema:
        return f"list of {type_of(schema['items'])}"
    if "$ref" in schema:
        return str(schema["$ref"]).rpartition("/")[2]
    return str(kind)


def _rows(root: Any, schema: Any, prefix: str, protected: set[str], depth: int) -> Iterator[Parameter]:
    properties = schema.get("properties") if isinstance(schema, dict) else None
    if not isinstance(properties, dict) or depth > MAX_DEPTH:
        return
    required = schema.get("required") if isinstance(schema.get("required"), list) else []
    for name, inner in properties.items():
        told = inner if isinstance(inner, dict) else {}
        yield Parameter(
            name=prefix + name,
            type=type_of(inner),
            is_required=name in required,
            is_inferrable=depth > 0 or name not in protected,
            description=str(told.get("description", "")),
            limits=limits_of(told),
        )
        below, mark = _inside(root, inner)
        yield from _rows(root, below, f"{prefix}{name}{mark}.", protected, depth + 1)


def _inside(root: Any, schema: Any) -> tuple[Any, str]:
    """The schema whose parameters lie inside this one, and a mark for each list around it."""
    mark = ""
    for _ in range(MAX_DEPTH):
        if not isinstance(schema, dict):
            break
        if "$ref" in schema:
            try:
                schema = followed(root, str(schema["$ref"]))
            except KeyError:
                break
        elif schema.get("type") == "array" and "properties" not in schema:
            schema, mark = schema.get("items"), f"{mark}[]"
        else:
            break
    return schema, mark


def _short(value: Any) -> str:
    text = str(value)
    return text if len(text) <= 60 else f"{text[:59]}…"
