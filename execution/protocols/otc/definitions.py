"""Tool definitions of the OTC draft: toolkit, input, output and requirements in blocks."""

from typing import Any

import orjson

from execution.protocols.inlining import described, without_refs
from execution.protocols.otc.version import SCHEMA
from execution.protocols.oxp.definitions import required
from registry.toolspec import ToolSpec


def encoded(tools: tuple[ToolSpec, ...]) -> bytes:
    return orjson.dumps({"$schema": SCHEMA, "tools": [definition(tool) for tool in tools]})


def definition(tool: ToolSpec) -> dict[str, Any]:
    told: dict[str, Any] = {
        "id": tool.tool_id,
        "name": tool.name,
        "description": tool.description or tool.title or tool.name,
        "toolkit": {"name": tool.toolkit, "description": tool.toolkit_description, "version": tool.version},
        "input": _input(tool),
        "output": _output(tool),
    }
    if requirements := required(tool):
        told["requirements"] = requirements
    return told


def _input(tool: ToolSpec) -> dict[str, Any]:
    told: dict[str, Any] = {"parameters": described(without_refs(tool.input_schema))}
    if tool.non_inferrable:
        told["non_inferrable_parameters"] = list(tool.non_inferrable)
    return told


def _output(tool: ToolSpec) -> dict[str, Any]:
    """Which ways a result may come: a value, nothing, an error. A tool without a schema for it returns nothing."""
    if tool.output_schema is None or tool.output is None:
        return {"available_modes": ["null", "error"]}
    modes = ["value", "error"] if tool.output.violations(None) else ["value", "null", "error"]
    told: dict[str, Any] = {"available_modes": modes, "value": without_refs(tool.output_schema)}
    if description := tool.output_schema.get("description"):
        told["description"] = description
    return told
