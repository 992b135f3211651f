"""Definitions: a tool as `tools/list` describes it, in the words of each revision of MCP."""

from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from execution.protocols.mcp.tasksupport import task_support
from registry.risk import RiskLevel
from registry.toolspec import ToolSpec

FULL = "2026-07-28"
_OBJECT_ONLY = "2025-11-25"  # until then an output schema describes an object
_FIRST_WITH_TITLE = "2025-06-18"  # and with outputSchema
_FIRST_WITH_ICONS = "2025-11-25"
_TASKS_IN_LIST = "2025-11-25"  # the only revision in which a list says which tools can be tasks
_HINTS = ("readOnlyHint", "destructiveHint", "idempotentHint", "openWorldHint")
_OUTWARD = ("network.", "external.")
_HARMFUL = frozenset({"data.write", "network.write", "filesystem.write", "exec.command", "external.side_effect"})
_AT_HOME = frozenset({"python", "wasm", "container"})  # runtimes that reach nobody else by themselves


@lru_cache(maxsize=20_000)
def definition(tool: ToolSpec, version: str = FULL) -> Mapping[str, Any]:
    """The tool for a client of this revision; an empty one is the plain dialect, which knows three fields."""
    told: dict[str, Any] = {"name": tool.flat_name}
    if version >= _FIRST_WITH_TITLE and tool.title:
        told["title"] = tool.title
    told["description"] = tool.description or tool.title or tool.name
    told["inputSchema"] = for_models(tool)
    if not version:
        return told
    if version >= _FIRST_WITH_TITLE and (output := _output(tool, version)):
        told["outputSchema"] = output
    told["annotations"] = annotations(tool)
    if version < _FIRST_WITH_TITLE and tool.title:
        told["annotations"] = {"title": tool.title, **told["annotations"]}
    if version >= _FIRST_WITH_ICONS and tool.icons:
        told["icons"] = [dict(icon) for icon in tool.icons]
    if version == _TASKS_IN_LIST and (support := task_support(tool)) != "forbidden":
        told["execution"] = {"taskSupport": support}
    return told


def for_models(tool: ToolSpec) -> dict[str, Any]:
    """The input schema without what a model must not fill in; every other keyword as it was published."""
    schema = tool.input_schema
    hidden = frozenset(tool.non_inferrable)
    if not hidden:
        return schema
    told = dict(schema)
    told["properties"] = {name: each for name, each in schema.get("properties", {}).items() if name not in hidden}
    if "required" in schema:
        told["required"] = [name for name in schema["required"] if name not in hidden]
    return told


def annotations(tool: ToolSpec) -> dict[str, Any]:
    """What the manifest says, and for what it leaves open what risk, capabilities and idempotency tell."""
    said = tool.annotations
    told: dict[str, Any] = {"title": said["title"]} if isinstance(said.get("title"), str) else {}
    derived = _derived(tool)
    for hint in _HINTS:
        told[hint] = said[hint] if isinstance(said.get(hint), bool) else derived[hint]
    return told


def _derived(tool: ToolSpec) -> dict[str, bool]:
    is_read = tool.idempotency == "read" and tool.risk < RiskLevel.HIGH and _HARMFUL.isdisjoint(tool.capabilities)
    reaches_out = any(name.startswith(_OUTWARD) for name in tool.capabilities)
    return {
        "readOnlyHint": is_read,
        "destructiveHint": not is_read and (tool.risk >= RiskLevel.HIGH or not _HARMFUL.isdisjoint(tool.capabilities)),
        # With `keyed` it takes the same call_id, which a client that repeats the arguments need not send.
        "idempotentHint": tool.idempotency in ("read", "idempotent"),
        "openWorldHint": reaches_out or tool.runtime.type not in _AT_HOME,
    }


def _output(tool: ToolSpec, version: str) -> Any:
    """The output schema where it says something that this revision can say."""
    schema = tool.output_schema
    if not isinstance(schema, dict) or not schema:
        return None
    return schema if version > _OBJECT_ONLY or schema.get("type") == "object" else None
