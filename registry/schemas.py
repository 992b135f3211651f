"""JSON Schema: compile once, list the violations."""

from functools import lru_cache
from typing import Any
from urllib.parse import quote

import jsonschema_rs
import orjson

from audit.canonical import canonical
from audit.schemamarks import SchemaMarks
from registry.schemacheck import Problem, input_problems, problems
from registry.schemacost import Cost, TooComplex
from registry.schemaparts import validator
from registry.schemawords import Explanation, Violation, discreet

__all__ = ["CompiledSchema", "Problem", "Violation", "compiled", "input_problems", "problems"]

_ROOT = "placet:schema"
_TOO_LARGE = Violation(parameter="", path="", message="Is too large or too complex to be checked in time")


class CompiledSchema:
    """A schema that was checked when it was saved, ready to judge values in bounded time."""

    def __init__(self, schema: Any) -> None:
        self.schema = schema
        self._validator = validator(schema)
        self._cost = _cost(schema)
        self._parts: dict[str, jsonschema_rs.Draft202012Validator] = {}
        self._registry: jsonschema_rs.Registry | None = None

    def violations(self, value: Any) -> list[Violation]:
        """Every way the value breaks the schema, in words that never repeat the value; empty if it is valid."""
        if self._cost is None or not self._cost.is_affordable(value):
            return [_TOO_LARGE]
        if self._validator.is_valid(value):
            return []
        found = Explanation(self.schema, self._is_valid_at).of(value)
        marks = SchemaMarks.of(self.schema)
        return found if marks is None else [discreet(violation, marks) for violation in found]

    def _is_valid_at(self, pointer: str, value: Any) -> bool:
        """Whether a part of the schema accepts a part of the value."""
        part = self._parts.get(pointer)
        if part is None:
            if self._registry is None:
                self._registry = jsonschema_rs.Registry([(_ROOT, self.schema)])
            part = self._parts[pointer] = validator({"$ref": f"{_ROOT}#{_in_uri(pointer)}"}, self._registry)
        return bool(part.is_valid(value))


def _cost(schema: Any) -> Cost | None:
    """None for a schema that is refused today, and was published when more was let in."""
    try:
        return Cost(schema)
    except TooComplex:
        return None


def compiled(schema: Any) -> CompiledSchema:
    """The compiled form of a schema; the same content is compiled once."""
    return _compiled(canonical(schema))


@lru_cache(maxsize=4096)
def _compiled(content: bytes) -> CompiledSchema:
    return CompiledSchema(orjson.loads(content))


def _in_uri(pointer: str) -> str:
    return quote(pointer, safe="/~$")
