"""Why a value breaks a schema, in words for people and models; the value itself is never repeated."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from itertools import islice
from typing import Any

import jsonschema_rs
import orjson

from audit.canonical import canonical
from audit.references import find, pointer_of
from audit.schemamarks import SchemaMarks
from registry.schemaparts import escaped, validator

MAX_VIOLATIONS = 20
MAX_DEPTH = 8
MAX_NESTED = 64  # schemas that lead to one another
MAX_NAME = 100  # characters
MAX_PARTS = 200  # parts of one value that are looked at one by one

_TYPES = {
    "string": "a string",
    "number": "a number",
    "integer": "an integer",
    "boolean": "true or false",
    "array": "an array",
    "object": "an object",
    "null": "null",
}
_BOUNDS: tuple[tuple[str, Callable[[Any, Any], bool], str], ...] = (  # keyword, is it broken, message
    ("minimum", lambda value, bound: bool(value < bound), "Must be at least {}"),
    ("maximum", lambda value, bound: bool(value > bound), "Must be at most {}"),
    ("exclusiveMinimum", lambda value, bound: bool(value <= bound), "Must be greater than {}"),
    ("exclusiveMaximum", lambda value, bound: bool(value >= bound), "Must be less than {}"),
)
_SIZES = {  # keyword of the least, keyword of the most, what is counted
    str: ("minLength", "maxLength", "characters"),
    list: ("minItems", "maxItems", "items"),
    dict: ("minProperties", "maxProperties", "members"),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Violation:
    """One broken rule: the parameter it concerns, where in it (a JSON pointer), and what must hold."""

    parameter: str
    path: str
    message: str
    within: str = ""  # where in the parameter, for people
    steps: tuple[str, ...] = ()  # the same place, step by step

    @property
    def told(self) -> str:
        """What must hold, and where in the parameter."""
        return f"At '{self.within}': {lowered(self.message)}" if self.within else self.message


class Explanation:
    """Walks a schema and a value that breaks it, side by side, and says what is broken."""

    def __init__(self, root: Any, is_valid_at: Callable[[str, Any], bool]) -> None:
        self._root = root
        self._is_valid_at = is_valid_at
        self._nested = 0

    def of(self, value: Any) -> list[Violation]:
        """The first broken rules, at least one."""
        found = list(islice(self._at("", value, ()), MAX_VIOLATIONS))
        return found or [_violation((), "Is not valid")]

    def _at(self, pointer: str, value: Any, path: tuple[str, ...]) -> Iterator[Violation]:
        schema = find(self._root, pointer)
        if not isinstance(schema, dict):
            yield _violation(path, "Is not allowed")
            return
        if len(path) > MAX_DEPTH or self._nested > MAX_NESTED:
            yield _violation(path, "Is not valid")
            return
        if not self._has_type(schema, value):
            yield _violation(path, f"Must be {_words(schema['type'])}")
            return
        something = False
        self._nested += 1
        for violation in self._broken(pointer, schema, value, path):
            something = True
            yield violation
        self._nested -= 1
        if not something:
            yield _violation(path, "Is not valid")

    def _broken(self, pointer: str, schema: dict[str, Any], value: Any, path: tuple[str, ...]) -> Iterator[Violation]:
        if ("enum" in schema or "const" in schema) and not _keeps(schema, ("enum", "const"), value):
            yield _violation(path, "Must be one of the allowed values")
        if isinstance(value, dict):
            yield from self._object(pointer, schema, value, path)
        elif isinstance(value, list):
            yield from self._array(pointer, schema, value, path)
        elif isinstance(value, str):
            for keyword, message in (("pattern", "Does not have the required form"), ("format", "Must be a valid {}")):
                if keyword in schema and not _keeps(schema, (keyword,), value):
                    yield _violation(path, message.format(schema[keyword]))
        elif isinstance(value, int | float) and not isinstance(value, bool):
            for keyword, is_broken, message in _BOUNDS:
                if keyword in schema and is_broken(value, schema[keyword]):
                    yield _violation(path, message.format(schema[keyword]))
            if "multipleOf" in schema and not _keeps(schema, ("multipleOf",), value):
                yield _violation(path, f"Must be a multiple of {schema['multipleOf']}")
        yield from _sizes(schema, value, path)
        yield from self._in_place(pointer, schema, value, path)

    def _object(
        self, pointer: str, schema: dict[str, Any], value: dict[str, Any], path: tuple[str, ...]
    ) -> Iterator[Violation]:
        for name in schema.get("required", ()):
            if name not in value:
                yield _violation((*path, name), "Is required")
        for name, needed in schema.get("dependentRequired", {}).items():
            if name in value:
                yield from (_violation((*path, other), "Is required") for other in needed if other not in value)
        known = schema.get("properties", {})
        for name in known:
            if name in value:
                yield from self._below(f"{pointer}/properties/{escaped(name)}", value[name], (*path, name))
        for name in islice((name for name in value if name not in known), MAX_PARTS):
            matching = [
                f"{pointer}/patternProperties/{escaped(pattern)}"
                for pattern in schema.get("patternProperties", ())
                if not self._is_other_name(pattern, name)
            ]
            if matching:
                for below in matching:
                    yield from self._below(below, value[name], (*path, name))
            elif schema.get("additionalProperties", schema.get("unevaluatedProperties", True)) is False:
                yield _violation((*path, name), "Is not a known parameter")
            elif "additionalProperties" in schema:
                yield from self._below(f"{pointer}/additionalProperties", value[name], (*path, name))
            if "propertyNames" in schema and not self._is_valid_at(f"{pointer}/propertyNames", name):
                yield _violation((*path, name), "Is not an allowed name")

    def _array(
        self, pointer: str, schema: dict[str, Any], value: list[Any], path: tuple[str, ...]
    ) -> Iterator[Violation]:
        head = len(schema.get("prefixItems", ()))
        for index, item in enumerate(value[:MAX_PARTS]):
            if index < head:
                yield from self._below(f"{pointer}/prefixItems/{index}", item, (*path, str(index)))
            elif "items" in schema:
                yield from self._below(f"{pointer}/items", item, (*path, str(index)))
        if schema.get("uniqueItems") and not _keeps(schema, ("uniqueItems",), value):
            yield _violation(path, "Must not hold the same item twice")
        if "contains" in schema and not _keeps(schema, ("contains", "minContains", "maxContains"), value):
            yield _violation(path, "Does not hold the required items")

    def _in_place(self, pointer: str, schema: dict[str, Any], value: Any, path: tuple[str, ...]) -> Iterator[Violation]:
        if "$ref" in schema:
            yield from self._below(pointer_of(schema["$ref"]), value, path)
        for index in range(len(schema.get("allOf", ()))):
            yield from self._below(f"{pointer}/allOf/{index}", value, path)
        for name in schema.get("dependentSchemas", ()):
            if isinstance(value, dict) and name in value:
                yield from self._below(f"{pointer}/dependentSchemas/{escaped(name)}", value, path)
        if "if" in schema:
            branch = "then" if self._is_valid_at(f"{pointer}/if", value) else "else"
            if branch in schema:
                yield from self._below(f"{pointer}/{branch}", value, path)
        for keyword in ("anyOf", "oneOf"):
            if keyword in schema:
                yield from self._choice(f"{pointer}/{keyword}", schema[keyword], value, path)
        if "not" in schema and self._is_valid_at(f"{pointer}/not", value):
            yield _violation(path, "Is not allowed")

    def _choice(self, pointer: str, options: list[Any], value: Any, path: tuple[str, ...]) -> Iterator[Violation]:
        matches = sum(self._is_valid_at(f"{pointer}/{index}", value) for index in range(len(options)))
        if matches == 1 or (matches and pointer.endswith("/anyOf")):
            return
        if matches:
            yield _violation(path, "Must match only one of the allowed forms")
            return
        resolved = [self._resolved(f"{pointer}/{index}") for index in range(len(options))]
        meant = [place for place, option in resolved if isinstance(option, dict) and self._has_type(option, value)]
        types = [option.get("type") for _, option in resolved if isinstance(option, dict)]
        if not meant and types and all(isinstance(type_, str) for type_ in types):
            yield _violation(path, f"Must be {_words(types)}")
        elif len(meant) == 1:
            yield from self._at(meant[0], value, path)
        else:
            yield _violation(path, "Must match one of the allowed forms")

    def _below(self, pointer: str, value: Any, path: tuple[str, ...]) -> Iterator[Violation]:
        if not self._is_valid_at(pointer, value):
            yield from self._at(pointer, value, path)

    def _resolved(self, pointer: str) -> tuple[str, Any]:
        """Where a bare `$ref` leads; a choice is usually a list of them."""
        for _ in range(MAX_DEPTH):
            schema = find(self._root, pointer)
            if not isinstance(schema, dict) or set(schema) - {"$ref", "title", "description"} or "$ref" not in schema:
                break
            pointer = pointer_of(schema["$ref"])
        return pointer, find(self._root, pointer)

    def _is_other_name(self, pattern: str, name: str) -> bool:
        return not _keeps({"pattern": pattern}, ("pattern",), name)

    def _has_type(self, schema: dict[str, Any], value: Any) -> bool:
        return _keeps(schema, ("type",), value)


def _keeps(schema: dict[str, Any], keywords: tuple[str, ...], value: Any) -> bool:
    """Whether the value keeps these keywords of a schema, taken alone; yes where they cannot stand alone."""
    alone = {keyword: schema[keyword] for keyword in keywords if keyword in schema}
    if not alone:
        return True
    judge = _alone(canonical(alone))
    return judge is None or bool(judge.is_valid(value))


@lru_cache(maxsize=4096)
def _alone(content: bytes) -> jsonschema_rs.Draft202012Validator | None:
    try:
        return validator(orjson.loads(content))
    except (ValueError, jsonschema_rs.ReferencingError):
        return None


def _sizes(schema: dict[str, Any], value: Any, path: tuple[str, ...]) -> Iterator[Violation]:
    for kind, (least, most, what) in _SIZES.items():
        if isinstance(value, kind):
            if len(value) < schema.get(least, 0):
                yield _violation(path, f"Must have at least {schema[least]} {what}")
            if most in schema and len(value) > schema[most]:
                yield _violation(path, f"Must have at most {schema[most]} {what}")


def _words(types: Any) -> str:
    """Types as people say them: "a number or a string"."""
    names = [types] if isinstance(types, str) else list(dict.fromkeys(types))
    return " or ".join(_TYPES.get(name, name) for name in names)


def _violation(path: tuple[str, ...], message: str) -> Violation:
    names = tuple(_clipped(step) for step in path)
    pointer = "".join(f"/{escaped(name)}" for name in names)
    parameter = names[0] if names else ""
    return Violation(parameter=parameter, path=pointer, message=message, within=".".join(names[1:]), steps=names)


def discreet(violation: Violation, marks: SchemaMarks) -> Violation:
    """The violation without a word of what is inside a secret: the names that its caller uses there are secret too."""
    below = marks
    for length, step in enumerate(violation.steps, 1):
        below = below.into(step)
        if below.is_secret:
            return _violation(violation.steps[:length], violation.message)
    return violation


def lowered(sentence: str) -> str:
    """As it goes on after other words."""
    return sentence[:1].lower() + sentence[1:]


def _clipped(name: str) -> str:
    """A name as it is told: the caller may have made it up, and as long as a body can be."""
    return name if len(name) <= MAX_NAME else f"{name[: MAX_NAME - 1]}…"
