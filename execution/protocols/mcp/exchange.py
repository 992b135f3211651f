"""Exchange: one JSON-RPC request that is being answered, and Stream, an answer that takes its time."""

import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

import orjson

from policy.caller import Caller


class Era(Enum):
    """How the client speaks: with a handshake, without one, or plain JSON-RPC without any of MCP's rules."""

    LEGACY = "legacy"
    MODERN = "modern"
    PLAIN = "plain"


@dataclass(frozen=True, slots=True, kw_only=True)
class Exchange:
    """One request, read and checked; handlers see nothing else of the wire."""

    caller: Caller
    era: Era
    version: str  # "2026-07-28", "2025-11-25", ...; empty in the plain dialect
    id: str | int
    method: str
    params: Mapping[str, Any] = field(default_factory=dict)
    meta: Mapping[str, Any] = field(default_factory=dict)  # params["_meta"], or empty
    capabilities: Mapping[str, Any] = field(default_factory=dict)  # of this request, or of its session
    session: str = ""  # the id of a legacy session
    headers: Mapping[str, str] = field(default_factory=dict)  # mcp-*, by lower-case name
    log_level: str = "info"  # from which on a tool's lines are told, as the legacy session set it; empty: none are

    @property
    def cancel_topic(self) -> str:
        """What the bell rings when the client of a legacy session gives this request up."""
        return cancel_topic(self.caller, self.session, self.id)


def cancel_topic(caller: Caller, session: str, request_id: str | int) -> str:
    """Clients choose their ids themselves, so one is told apart by whose it is, and 1 is not "1"."""
    named = orjson.dumps([caller.agent_id, session, request_id])
    return f"mcp-cancel:{hashlib.sha256(named).hexdigest()}"


@dataclass(frozen=True, slots=True)
class Stream:
    """An answer in several messages; the last has "result" or "error", the ones before are notifications.

    The messages come without "jsonrpc" and without the request's id. None says that there is nothing new: a moment to
    tell the client that we are still here. close() is called on the iterator whenever it does not reach its end.
    """

    messages: Iterator[Mapping[str, Any] | None]
