"""What is wrong with a JSON Schema that someone wants to save."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from itertools import islice
from typing import Any

import jsonschema_rs
import orjson

from audit.references import find, pointer_of
from registry.paramheaders import header_problems
from registry.schemacost import Cost, TooComplex
from registry.schemaparts import DIALECTS, pattern_cost, subschemas, validator

MAX_BYTES = 64_000
MAX_DEPTH = 32
MAX_SCHEMAS = 2_000
MAX_PROBLEMS = 50
MAX_PATTERNS = 2_500_000.0  # what all patterns cost together: to weigh them takes time as well
_REFUSED_PATTERN = 80_000.0  # it took as long to weigh as the largest that is taken

_REFUSED = {
    "$id": "names a schema by address; schemas here refer only to themselves",
    "$dynamicRef": "is not supported; use $ref",
    "$dynamicAnchor": "is not supported; use $ref and $defs",
    "$recursiveRef": "is not supported; use $ref",
    "$vocabulary": "is not supported",
}


@dataclass(frozen=True, slots=True)
class Problem:
    """One reason to refuse a schema, and the JSON pointer of where it is."""

    path: str
    reason: str

    def __str__(self) -> str:
        return f"{self.path or '/'}: {self.reason}"


def problems(schema: Any) -> list[Problem]:
    """The first reasons to refuse this schema; none of the checks follows a reference to the outside."""
    if not isinstance(schema, dict | bool):
        return [Problem("", "a schema is an object")]
    try:
        content = orjson.dumps(schema)
    except TypeError:
        return [Problem("", "is not JSON with 64-bit numbers, or is nested too deep")]
    if len(content) > MAX_BYTES:
        return [Problem("", f"has {len(content)} bytes; at most {MAX_BYTES} are allowed")]
    if _depth(schema) > MAX_DEPTH:
        return [Problem("", f"is nested more than {MAX_DEPTH} levels deep")]
    return list(_problems(content))


@lru_cache(maxsize=256)  # a manifest is looked at when it is given, saved and published
def _problems(content: bytes) -> tuple[Problem, ...]:
    schema = orjson.loads(content)
    return (
        tuple(islice(_walk(schema), MAX_PROBLEMS)) or tuple(_library_problems(schema)) or tuple(_cost_problems(schema))
    )


def input_problems(schema: Any) -> list[Problem]:
    """The same for the schema of a tool's input, which is always an object."""
    if not isinstance(schema, dict) or schema.get("type") != "object":
        return [Problem("/type", 'the input of a tool is an object: say "type: object"')]
    return problems(schema) or [Problem(path, reason) for path, reason in header_problems(schema)]


def _walk(root: Any) -> Iterator[Problem]:
    """Judges each schema inside a schema once, also those that only a `$ref` makes a schema."""
    seen: set[str] = set()
    patterns = _Patterns()
    waiting: list[tuple[str, Any]] = [("", root)]
    while waiting:
        pointer, schema = waiting.pop()
        if pointer in seen or isinstance(schema, bool):
            continue
        seen.add(pointer)
        if len(seen) > MAX_SCHEMAS:
            yield Problem("", f"holds more than {MAX_SCHEMAS} schemas")
            return
        if not isinstance(schema, dict):
            yield Problem(pointer, "a schema is an object")
            continue
        yield from _own_problems(pointer, schema)
        yield from patterns.problems(pointer, schema)
        if patterns.cost > MAX_PATTERNS:
            yield Problem(pointer, "holds more or larger patterns than can be looked at in time")
            return
        waiting.extend((pointer + below, part) for below, part in subschemas(schema))
        reference = schema.get("$ref")
        if reference is None:
            continue
        try:
            meant = pointer_of(reference if isinstance(reference, str) else "")
        except KeyError:
            yield Problem(f"{pointer}/$ref", 'only references within the schema, such as "#/$defs/name", are followed')
            continue
        try:
            waiting.append((meant, find(root, meant)))
        except KeyError:
            yield Problem(f"{pointer}/$ref", "points at nothing")


def _own_problems(pointer: str, schema: dict[str, Any]) -> Iterator[Problem]:
    for keyword, reason in _REFUSED.items():
        if keyword in schema:
            yield Problem(f"{pointer}/{keyword}", reason)
    dialect = schema.get("$schema")
    if "$schema" in schema and (pointer or not isinstance(dialect, str) or dialect not in DIALECTS):
        yield Problem(f"{pointer}/$schema", f"only {min(DIALECTS)} is known, and only at the top")


class _Patterns:
    """The patterns of a schema, each weighed once, until they are too heavy together."""

    def __init__(self) -> None:
        self.cost = 0.0
        self._weighed: set[str] = set()

    def problems(self, pointer: str, schema: dict[str, Any]) -> Iterator[Problem]:
        named = schema.get("patternProperties")
        patterns = [("/patternProperties", pattern) for pattern in named] if isinstance(named, dict) else []
        if isinstance(schema.get("pattern"), str):
            patterns.append(("/pattern", schema["pattern"]))
        for below, pattern in patterns:
            cost = pattern_cost(pattern)
            if cost is None:
                reason = "this pattern needs look-around, back-references or too much memory, or is no pattern"
                yield Problem(pointer + below, reason)
            if pattern not in self._weighed:
                self._weighed.add(pattern)
                self.cost += _REFUSED_PATTERN if cost is None else cost
            if self.cost > MAX_PATTERNS:
                return


def _library_problems(schema: Any) -> Iterator[Problem]:
    try:
        jsonschema_rs.meta.validate(schema)
        validator(schema)
    except jsonschema_rs.ValidationError as error:
        where = "".join(f"/{step}" for step in error.instance_path)
        yield Problem(where, "is not valid JSON Schema 2020-12")
    except (ValueError, jsonschema_rs.ReferencingError):
        yield Problem("", "is not valid JSON Schema 2020-12")


def _cost_problems(schema: Any) -> Iterator[Problem]:
    try:
        Cost(schema)
    except TooComplex as error:
        yield Problem("", f"{error}; checking an input could take too long")


def _depth(value: Any) -> int:
    """How deep containers nest; stops looking just past the limit."""
    depth, level = 0, [value]
    while level and depth <= MAX_DEPTH:
        depth += 1
        level = [
            child
            for part in level
            if isinstance(part, dict | list)
            for child in (part.values() if isinstance(part, dict) else part)
            if isinstance(child, dict | list)
        ]
    return depth
