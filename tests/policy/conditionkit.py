"""What conditions are tried on: a payment tool, its agent, and an input schema with every kind of field."""

from collections.abc import Collection, Mapping
from datetime import UTC, datetime
from typing import Any

from policy.caller import Caller
from policy.conditions import compiled, problems
from policy.question import Question
from registry.risk import RiskLevel
from registry.toolspec import RetrySpec, RuntimeSpec, ToolSpec

MONDAY = datetime(2026, 1, 5, 10, 30, 15, tzinfo=UTC)
SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "amount": {"type": "number", "minimum": 0, "maximum": 1000},
        "count": {"type": "integer"},
        "currency": {"enum": ["EUR", "USD"]},
        "urgent": {"type": "boolean"},
        "note": {"type": "string"},
        "reference": {"type": ["string", "null"]},
        "tags": {"type": "array", "items": {"enum": ["gift", "return"]}},
        "to": {"$ref": "#/$defs/address"},
        "lines": {"type": "array", "items": {"$ref": "#/$defs/line"}},
        "labels": {"type": "object", "additionalProperties": {"type": "string"}},
        "extra": {"type": "object"},
    },
    "required": ["amount", "count", "currency", "urgent", "reference", "tags", "to", "lines", "labels", "extra"],
    "additionalProperties": False,
    "$defs": {
        "address": {
            "type": "object",
            "properties": {"city": {"type": "string"}, "zip": {"type": "string"}},
            "required": ["city"],
        },
        "line": {
            "type": "object",
            "properties": {
                "sku": {"type": "string"},
                "pieces": {"type": "integer", "minimum": 1},
                "part_of": {"$ref": "#/$defs/line"},
            },
            "required": ["sku", "pieces"],
        },
    },
}
INPUT: dict[str, Any] = {
    "amount": 50,
    "count": 3,
    "currency": "EUR",
    "urgent": True,
    "reference": None,
    "tags": ["gift"],
    "to": {"city": "Köln"},
    "lines": [{"sku": "A-1", "pieces": 2}, {"sku": "B-2", "pieces": 1}],
    "labels": {"team": "red"},
    "extra": {"depth": 7},
}


def tool_spec(**changes: Any) -> ToolSpec:
    """The tool Payments.Refund, of high risk."""
    facts: dict[str, Any] = {
        "id": 1,
        "toolkit_id": 1,
        "toolkit": "Payments",
        "toolkit_title": "",
        "toolkit_description": "",
        "name": "Refund",
        "version": "1.2.0",
        "state": "published",
        "tool_id": "Payments.Refund@1.2.0",
        "flat_name": "Payments_Refund",
        "title": "",
        "description": "",
        "digest": "",
        "version_digest": "",
        "risk": RiskLevel.HIGH,
        "capabilities": ("external.side_effect", "money"),
        "idempotency": "keyed",
        "input_schema": SCHEMA,
        "output_schema": None,
        "non_inferrable": (),
        "annotations": {},
        "requirements": {},
        "runtime": RuntimeSpec(type="http", dispatch="queue", timeout=30.0, retry=RetrySpec(), options={}),
        "auth": {},
        "edited_by_id": None,
    }
    return ToolSpec(**(facts | changes))


REFUND = tool_spec()


def asked(arguments: Mapping[str, Any] | None = None, *, tool: ToolSpec = REFUND, agent_id: int = 1) -> Question:
    """support-bot asks for a refund on behalf of ada."""
    caller = Caller(agent_id=agent_id, name="support-bot", user_id=7, credential="key:abc")
    return Question(caller=caller, tool=tool, arguments=INPUT if arguments is None else arguments, user_id="ada")


def holds(
    text: str,
    arguments: Mapping[str, Any] | None = None,
    *,
    groups: Collection[str] = ("support", "night"),
    now: datetime = MONDAY,
) -> bool:
    """Whether a condition holds of the usual call, or of one with these arguments."""
    return compiled(text).holds(asked(arguments), groups=groups, now=now)


def found(text: str, *schemas: Mapping[str, Any]) -> str:
    """What is wrong with a condition over the usual schema, or over these, in one text."""
    return " ".join(problems(text, input_schemas=schemas or [SCHEMA]))
