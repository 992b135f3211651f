"""Serving: one exchange to its result, by the table of methods."""

from collections.abc import Mapping
from typing import Any

from execution.protocols.mcp.discovery import SERVER_INFO, server_info
from execution.protocols.mcp.exchange import Era, Exchange
from execution.protocols.mcp.methods import METHODS, Method
from execution.protocols.mcp.rpcerrors import METHOD_NOT_FOUND, RpcError


def method_of(name: str, era: Era, version: str) -> Method:
    """Who answers this method in this revision; RpcError if nobody does."""
    found = METHODS.get(name)
    if found is None or era not in found.eras or (era is Era.LEGACY and version < found.since):
        # The name is the caller's own text, so it is not repeated.
        message = "Method not found" if era is not Era.PLAIN else "Only tools/list and tools/call are known"
        raise RpcError(METHOD_NOT_FOUND, message, http=404 if era is Era.MODERN else 200)
    return found


def told(exchange: Exchange, message: Mapping[str, Any]) -> Mapping[str, Any]:
    """A handler's message as it is sent: a notification, or the response to the request."""
    if "result" in message:
        return {"jsonrpc": "2.0", "id": exchange.id, "result": completed(exchange, message["result"])}
    if "error" in message:
        return {"jsonrpc": "2.0", "id": exchange.id, "error": message["error"]}
    return {"jsonrpc": "2.0", **message}


def completed(exchange: Exchange, result: Mapping[str, Any]) -> Mapping[str, Any]:
    """A modern result says of what type it is and who gave it."""
    if exchange.era is not Era.MODERN:
        return result
    meta = {SERVER_INFO: server_info(), **result.get("_meta", {})}
    return {"resultType": "complete", **result, "_meta": meta}


def is_last(message: Mapping[str, Any] | None) -> bool:
    return message is not None and ("result" in message or "error" in message)
