"""Prompts and resources: MCP has them, Placet has none, and whoever looks finds empty lists and nothing to get."""

from collections.abc import Callable, Mapping
from typing import Any, NoReturn

from execution.protocols.mcp.discovery import TTL_MS
from execution.protocols.mcp.exchange import Era, Exchange
from execution.protocols.mcp.rpcerrors import INVALID_PARAMS, RpcError


def empty(name: str) -> Callable[[Exchange], Mapping[str, Any]]:
    """A list under this name that has one page, and nothing on it."""

    def answer(exchange: Exchange) -> Mapping[str, Any]:
        if exchange.params.get("cursor", "") != "":
            raise RpcError(INVALID_PARAMS, "Invalid params: cursor is not one of ours")
        hints = {"ttlMs": TTL_MS, "cacheScope": "private"} if exchange.era is Era.MODERN else {}
        return {name: [], **hints}

    return answer


def unknown(kind: str, param: str) -> Callable[[Exchange], NoReturn]:
    """Whatever is asked for by this parameter is not there."""

    def answer(exchange: Exchange) -> NoReturn:
        asked = exchange.params.get(param)
        if not isinstance(asked, str):
            raise RpcError(INVALID_PARAMS, f"Invalid params: {param} must be a string")
        raise RpcError(INVALID_PARAMS, f"There is no {kind} of this name: this server has tools only", {param: asked})

    return answer
