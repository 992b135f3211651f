"""Tool definitions of OXP 1.0: a tool as `GET /tools` describes it."""

from typing import Any

import orjson

from execution.protocols.inlining import described, without_refs
from execution.protocols.oxp.version import SCHEMA
from registry.toolspec import ToolSpec

REQUIREMENTS = ("authorization", "secrets", "user_id")


def encoded(tools: tuple[ToolSpec, ...]) -> bytes:
    """The whole answer: one array under the schema's name for it and under the prose's."""
    array = orjson.dumps([definition(tool) for tool in tools])
    return b'{"$schema":%b,"items":%b,"tools":%b}' % (orjson.dumps(SCHEMA), array, array)


def definition(tool: ToolSpec) -> dict[str, Any]:
    told: dict[str, Any] = {
        "id": tool.tool_id,
        "name": tool.flat_name,
        "description": tool.description or tool.title or tool.name,
        "version": tool.version,
        "input_schema": described(without_refs(tool.input_schema)),
        "output_schema": None if tool.output_schema is None else without_refs(tool.output_schema),
    }
    if requirements := required(tool):
        told["requirements"] = requirements
    return told


def required(tool: ToolSpec) -> dict[str, Any]:
    """What a caller must bring, in the specification's own spelling; empty if nothing."""
    return {name: tool.requirements[name] for name in REQUIREMENTS if tool.requirements.get(name)}
