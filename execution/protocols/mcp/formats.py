"""Formats: the tools of a caller as the APIs of models take them."""

from collections.abc import Callable, Mapping
from typing import Any

from execution.protocols.mcp.definitions import definition
from execution.protocols.mcp.listing import shelf_of
from policy.caller import Caller

Told = Mapping[str, Any]


def _function(tool: Told) -> Told:
    """Chat completions of OpenAI, and of Ollama, which took them over."""
    told = {"name": tool["name"], "description": tool["description"], "parameters": tool["inputSchema"]}
    return {"type": "function", "function": told}


def _anthropic(tool: Told) -> Told:
    return {"name": tool["name"], "description": tool["description"], "input_schema": tool["inputSchema"]}


def _mcp(tool: Told) -> Told:
    return tool


FORMATS: Mapping[str, Callable[[Told], Told]] = {
    "openai": _function,
    "anthropic": _anthropic,
    "ollama": _function,
    "mcp": _mcp,
}


def formatted(caller: Caller, format: str) -> list[Told]:
    """Every tool that the caller may call, in its latest version, without what a model must not fill in."""
    return [FORMATS[format](definition(tool)) for tool in shelf_of(caller).tools]
