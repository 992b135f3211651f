"""A form made from an input schema: which field each parameter gets.

A field is named by its place in the schema, never by what the schema calls it: names are a publisher's words. What no
field can draw (alternatives, maps, lists of objects) is written as JSON, for that parameter alone.
"""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from audit.references import followed
from audit.visible import visible
from registry.parameters import limits_of, type_of
from registry.schemaparts import escaped

MAX_DEPTH = 4
MAX_FIELDS = 150
MAX_OPTIONS = 200
LONG = 120  # characters from which a text gets a box with several lines
_SECRETS = (("writeOnly", True), ("format", "password"), ("x-secret", True))
# Keywords that say more than one field can: whoever has them is written as JSON.
_BEYOND = ("allOf", "anyOf", "oneOf", "not", "if", "patternProperties", "prefixItems", "dependentSchemas")
_INPUTS = {"email": "email", "uri": "url", "date": "date"}


@dataclass(slots=True, kw_only=True)
class Field:
    """One parameter: how it is drawn, what stands in it, and what is wrong with that."""

    name: str  # in the form: "p-0-2"
    label: str
    pointer: str  # in the arguments: "/address/street"
    kind: str  # text | long | secret | number | choice | several | lines | json | group
    is_required: bool
    is_demanded: bool = True  # required whatever else is filled in: nothing around it can be left out
    about: str = ""
    type: str = ""
    limits: str = ""
    input_type: str = "text"
    is_whole: bool = False  # of numbers
    items: str = ""  # of lines: what each of them is
    options: list[tuple[str, str, Any]] = field(default_factory=list)  # what the form says, what people read, the value
    children: list["Field"] = field(default_factory=list)
    text: str = ""
    chosen: list[str] = field(default_factory=list)
    error: str = ""

    @property
    def id(self) -> str:
        return f"try-{self.name}"

    @property
    def described_by(self) -> str:
        """The ids of what explains the field to those who do not see it."""
        told = [f"{self.id}-about"] if self.about or self.limits or self.type else []
        return " ".join([*told, *([f"{self.id}-error"] if self.error else [])])


def fields_of(schema: Any) -> list[Field] | None:
    """The fields of an input schema, with its defaults filled in; None if only JSON can say what it takes."""
    maker = _Maker(schema)
    try:
        resolved = maker.resolved(schema)
    except (KeyError, ValueError):
        return None
    if not isinstance(resolved, dict) or any(word in resolved for word in _BEYOND):
        return None
    drawn = maker.group(resolved, Field(name="p", label="", pointer="", kind="group", is_required=True), 0)
    return None if maker.is_too_large else drawn


class _Maker:
    """Draws schema by schema, and counts how much was drawn."""

    def __init__(self, root: Any) -> None:
        self._root, self._drawn = root, 0

    @property
    def is_too_large(self) -> bool:
        return self._drawn > MAX_FIELDS

    def resolved(self, schema: Any) -> Any:
        """The schema that a chain of references leads to, described as where it is referred to."""
        for _ in range(8):
            if not isinstance(schema, dict) or "$ref" not in schema:
                return schema
            told = {name: schema[name] for name in ("title", "description", "default") if name in schema}
            if not str(schema["$ref"]).startswith("#/"):
                raise KeyError(schema["$ref"])
            target = followed(self._root, schema["$ref"])
            schema = {**target, **told} if isinstance(target, dict) else target
        raise ValueError("references that lead in a circle")

    def group(self, schema: dict[str, Any], around: Field, depth: int) -> list[Field]:
        properties = schema.get("properties")
        required: list[Any] = schema["required"] if isinstance(schema.get("required"), list) else []
        if not isinstance(properties, dict):
            return []
        drawn = []
        for place, (label, inner) in enumerate(properties.items()):
            self._drawn += 1
            if self._drawn > MAX_FIELDS:
                break
            made = Field(
                name=f"{around.name}-{place}",
                label=label,
                pointer=f"{around.pointer}/{escaped(label)}",
                kind="json",
                is_required=label in required,
                is_demanded=label in required and around.is_demanded,
            )
            self._describe(made, inner, depth)
            drawn.append(made)
        return drawn

    def _describe(self, made: Field, schema: Any, depth: int) -> None:
        try:
            schema = self.resolved(schema)
        except (KeyError, ValueError):
            schema = {}
        told = schema if isinstance(schema, dict) else {}
        made.about = str(told.get("description") or told.get("title") or "")
        made.type, made.limits = type_of(told) if told else "anything", limits_of(told)
        self._draw(made, _without_null(told, made.is_required), depth)
        if "default" in told:
            _fill(made, told["default"])

    def _draw(self, made: Field, schema: dict[str, Any], depth: int) -> None:
        """Decides the kind; what is not recognised stays JSON."""
        choices = [schema["const"]] if "const" in schema else schema.get("enum")
        if any(word in schema for word in _BEYOND):
            return
        if isinstance(choices, list) and 0 < len(choices) <= MAX_OPTIONS:
            made.kind, made.options = "choice", _options(choices)
            return
        match schema.get("type"):
            case "string":
                is_secret = any(schema.get(mark) == value for mark, value in _SECRETS)
                is_long = "\n" in str(schema.get("default", "")) or _number(schema.get("maxLength")) > LONG
                made.kind = "secret" if is_secret else "long" if is_long else "text"
                made.input_type = _INPUTS.get(str(schema.get("format", "")), "text")
            case "integer" | "number" as kind:
                made.kind, made.is_whole = "number", kind == "integer"
            case "boolean":
                made.kind, made.options = "choice", _options([True, False])
            case "array":
                self._draw_list(made, schema)
            case "object" if isinstance(schema.get("properties"), dict) and depth < MAX_DEPTH:
                if schema["properties"] and self._drawn < MAX_FIELDS:
                    made.kind = "group"
                    made.children = self.group(schema, made, depth + 1)

    def _draw_list(self, made: Field, schema: dict[str, Any]) -> None:
        try:
            items = self.resolved(schema.get("items"))
        except (KeyError, ValueError):
            return
        if not isinstance(items, dict) or any(word in items for word in _BEYOND):
            return
        if isinstance(items.get("enum"), list) and 0 < len(items["enum"]) <= 20:
            made.kind, made.options = "several", _options(items["enum"])
        elif items.get("type") in ("string", "integer", "number") and "enum" not in items and "const" not in items:
            made.kind, made.items = "lines", items["type"]


def every(drawn: list[Field]) -> Iterator[Field]:
    for each in drawn:
        yield each
        yield from every(each.children)


def _without_null(schema: dict[str, Any], is_required: bool) -> dict[str, Any]:
    """Where null may be left out instead, the form offers what is left; where it may not, only JSON says null."""
    if is_required:
        return schema
    kinds = schema.get("type")
    if isinstance(kinds, list) and len(rest := [kind for kind in kinds if kind != "null"]) == 1:
        return {**schema, "type": rest[0]}
    for word in ("anyOf", "oneOf"):
        options = schema.get(word)
        if isinstance(options, list):
            real = [each for each in options if not (isinstance(each, dict) and each.get("type") == "null")]
            if len(real) == 1 and len(options) == 2 and isinstance(real[0], dict) and "$ref" not in real[0]:
                return {**{name: value for name, value in schema.items() if name != word}, **real[0]}
    return schema


def _options(values: list[Any]) -> list[tuple[str, str, Any]]:
    def told(value: Any) -> str:
        return visible(value if isinstance(value, str) else json.dumps(value, ensure_ascii=False))[:200]

    return [(str(place), told(value), value) for place, value in enumerate(values)]


def _fill(made: Field, value: Any) -> None:
    """A default, as one would have typed it."""
    if made.kind == "choice":
        made.chosen = [key for key, _, known in made.options if known == value and type(known) is type(value)]
    elif made.kind == "several" and isinstance(value, list):
        made.chosen = [key for key, _, known in made.options if known in value]
    elif made.kind == "lines" and isinstance(value, list):
        made.text = "\n".join(map(str, value))
    elif made.kind in ("text", "long") and isinstance(value, str):
        made.text = value
    elif made.kind in ("number", "json"):
        made.text = json.dumps(value, ensure_ascii=False)


def _number(value: Any) -> float:
    return value if isinstance(value, int | float) and not isinstance(value, bool) else 0


def prefilled(arguments: Mapping[str, Any]) -> str:
    """Arguments as the JSON that one starts from."""
    return json.dumps(arguments, indent=2, ensure_ascii=False)
