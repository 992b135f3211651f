"""Listing: `tools/list`, the latest version of every tool that the caller may call, a page at a time."""

import binascii
from base64 import urlsafe_b64decode, urlsafe_b64encode
from bisect import bisect_right
from collections.abc import Mapping
from dataclasses import dataclass
from threading import Lock
from typing import Any

from execution.protocols.mcp.definitions import definition
from execution.protocols.mcp.exchange import Era, Exchange
from execution.protocols.mcp.rpcerrors import INVALID_PARAMS, RpcError
from policy import engine, visibility
from policy.caller import Caller
from registry import resolution, revision
from registry.toolspec import ToolSpec

PAGE = 100
TTL_MS = 30_000
MAX_READERS = 10_000  # callers whose list is known
MAX_CURSOR = 400
_AFTER = b"after:"


@dataclass(frozen=True, slots=True)
class Shelf:
    """The tools of one caller, in the order of their names without case."""

    keys: tuple[str, ...]
    tools: tuple[ToolSpec, ...]


_shelves: dict[int, Shelf] = {}
_kept_at: int | None = None
_lock = Lock()


def tools_list(exchange: Exchange) -> Mapping[str, Any]:
    """One page; it depends on nothing but the registry, the policy and who asks."""
    shelf = shelf_of(exchange.caller)
    start = bisect_right(shelf.keys, _after(exchange.params))
    page = shelf.tools[start : start + PAGE]
    told: dict[str, Any] = {"tools": [definition(tool, exchange.version) for tool in page]}
    if start + PAGE < len(shelf.tools):
        told["nextCursor"] = _cursor(shelf.keys[start + PAGE - 1])
    if exchange.era is Era.MODERN:
        told |= {"ttlMs": TTL_MS, "cacheScope": "private"}
    return told


def shelf_of(caller: Caller) -> Shelf:
    """What the caller may call, worked out once per state of the registry."""
    global _shelves, _kept_at
    with revision.pinned():
        now = revision.current()
        with _lock:
            if now != _kept_at or len(_shelves) >= MAX_READERS:
                _shelves, _kept_at = {}, now
            found = _shelves.get(caller.agent_id)
        if found is None:
            found = _shelf(caller)
            with _lock:
                if now == _kept_at:
                    _shelves[caller.agent_id] = found
        return found


def _shelf(caller: Caller) -> Shelf:
    """A tool's name means its highest published version, or else its highest deprecated one."""
    latest: dict[str, ToolSpec] = {}
    for tool in resolution.callable_tools(visibility.callable_toolkits(caller)):  # versions come in rising order
        key = tool.flat_name.lower()
        if key not in latest or not tool.is_deprecated or latest[key].is_deprecated:
            latest[key] = tool
    keys = sorted(key for key, tool in latest.items() if not engine.is_barred(caller, tool))
    return Shelf(tuple(keys), tuple(latest[key] for key in keys))


def _cursor(key: str) -> str:
    """Where a page ended, by name: what is published or withdrawn meanwhile moves nobody's place."""
    return urlsafe_b64encode(_AFTER + key.encode()).decode().rstrip("=")


def _after(params: Mapping[str, Any]) -> str:
    """The name after which the page begins; an empty cursor is the beginning, as is none."""
    cursor = params.get("cursor", "")
    if cursor == "":
        return ""
    try:
        if not isinstance(cursor, str) or len(cursor) > MAX_CURSOR:
            raise ValueError
        read = urlsafe_b64decode(cursor.encode("ascii") + b"=" * (-len(cursor) % 4))
        if not read.startswith(_AFTER):
            raise ValueError
        key = read.removeprefix(_AFTER).decode("ascii")
        if _cursor(key) != cursor:  # one place has one cursor
            raise ValueError
    except (ValueError, binascii.Error):
        detail = "Send nextCursor of the page before exactly as it came, or no cursor to begin again"
        raise RpcError(INVALID_PARAMS, "Invalid params: cursor is not one of ours", {"detail": detail}) from None
    return key
