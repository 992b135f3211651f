"""The variables that a condition knows, and what is known about them before any call."""

from collections.abc import Mapping, Sequence
from typing import Any

from policy.cel.shapes import Shape, of_kinds, of_schemas
from registry.bindings import TYPES
from registry.models import Tool
from registry.risk import RiskLevel

_TEXT = {"type": "string"}
_TEXTS = {"type": "array", "items": _TEXT}
_FIELDS: dict[str, dict[str, Any]] = {
    "agent": {"name": _TEXT, "groups": _TEXTS, "owner": _TEXT},
    "tool": {
        "id": _TEXT,
        "toolkit": _TEXT,
        "name": _TEXT,
        "version": _TEXT,
        "risk": {"enum": [level.word for level in RiskLevel]},
        "risk_level": {"type": "integer", "enum": [level.value for level in RiskLevel]},
        "capabilities": _TEXTS,
        "idempotency": {"enum": [promise.value for promise in Tool.Idempotency]},
        "runtime": {"enum": list(TYPES)},
    },
    "context": {"user_id": _TEXT},
}
VARIABLES = ("agent", "tool", "input", "context", "now")
_FIXED = {
    name: of_schemas(
        [{"type": "object", "properties": fields, "required": list(fields), "additionalProperties": False}]
    )
    for name, fields in _FIELDS.items()
}
_NOW = of_kinds("timestamp")
_ANY_OBJECT = of_kinds("map")


def shapes(input_schemas: Sequence[Mapping[str, Any]] = ()) -> dict[str, Shape]:
    """What each variable is; `input` fits one of the schemas, or may hold anything if there are none."""
    given = of_schemas(input_schemas) if input_schemas else _ANY_OBJECT
    return {**_FIXED, "input": given, "now": _NOW}
