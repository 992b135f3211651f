"""Task support: what a client declared, what a tool allows, and whether a call is answered with a task at once."""

from collections.abc import Mapping
from typing import Any

from execution.protocols.mcp.exchange import Era, Exchange
from execution.protocols.mcp.rpcerrors import INVALID_PARAMS, METHOD_NOT_FOUND, MISSING_CAPABILITY, RpcError
from registry.risk import RiskLevel
from registry.toolspec import ToolSpec

EXTENSION = "io.modelcontextprotocol/tasks"
SINCE = "2025-11-25"  # the one revision whose own tasks we serve
# What `server/discover` says under capabilities.extensions, and what `initialize` of that revision says under tasks.
EXTENSIONS: Mapping[str, Any] = {EXTENSION: {}}
CAPABILITY: Mapping[str, Any] = {"list": {}, "cancel": {}, "requests": {"tools": {"call": {}}}}
_SUPPORT = ("forbidden", "optional", "required")


def task_support(tool: ToolSpec) -> str:
    """The annotation `taskSupport`; without one, a task is possible where a call is queued or people may be asked."""
    declared = tool.annotations.get("taskSupport")
    if declared in _SUPPORT:
        return str(declared)
    return "optional" if tool.runtime.dispatch != "inline" or tool.risk >= RiskLevel.HIGH else "forbidden"


def is_declared(exchange: Exchange) -> bool:
    """Whether this request may be answered with a task of the extension."""
    extensions = exchange.capabilities.get("extensions")
    return exchange.era is Era.MODERN and isinstance(extensions, Mapping) and EXTENSION in extensions


def require_declared(exchange: Exchange) -> None:
    if exchange.era is Era.MODERN and not is_declared(exchange):
        raise _missing(f"{exchange.method} is for clients that declare the tasks extension")


def is_augmented(exchange: Exchange) -> bool:
    """Whether a client of 2025-11-25 asks for a task; in every other revision the parameter means nothing."""
    if exchange.era is not Era.LEGACY or exchange.version != SINCE or "task" not in exchange.params:
        return False
    asked = exchange.params["task"]
    ttl = asked.get("ttl") if isinstance(asked, Mapping) else ""
    if ttl is not None and (isinstance(ttl, bool) or not isinstance(ttl, int | float) or ttl < 0):
        raise RpcError(INVALID_PARAMS, "Invalid params: task is an object, and its ttl a number of milliseconds")
    return True


def wants_task(exchange: Exchange, tool: ToolSpec) -> bool:
    """Whether the call is answered with a task at once, whatever becomes of it; RpcError if it can not be answered."""
    support = task_support(tool)
    if is_augmented(exchange):
        if support == "forbidden":
            raise RpcError(METHOD_NOT_FOUND, f"{tool.flat_name} can not be called as a task: it answers at once")
        return True
    if support != "required" or exchange.era is Era.PLAIN:
        return False
    if exchange.era is Era.MODERN:
        if not is_declared(exchange):
            raise _missing(f"{tool.flat_name} answers with a task only")
        return True
    if exchange.version == SINCE:
        raise RpcError(METHOD_NOT_FOUND, f"{tool.flat_name} can only be called as a task: send params.task")
    return False  # older clients never heard of tasks


def may_become_task(exchange: Exchange, tool: ToolSpec) -> bool:
    """Whether a call that takes longer than its client should be held may be answered with a task instead."""
    return is_declared(exchange) and task_support(tool) != "forbidden"


def _missing(message: str) -> RpcError:
    data: dict[str, Any] = {"requiredCapabilities": {"extensions": {EXTENSION: {}}}}
    return RpcError(MISSING_CAPABILITY, f"Missing required client capability: {message}", data, http=400)
