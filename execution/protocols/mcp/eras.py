"""Eras: which revision of MCP a client speaks, told from the first thing it says."""

from collections.abc import Mapping
from typing import Any

from execution.protocols.mcp import headers
from execution.protocols.mcp.exchange import Era
from execution.protocols.mcp.jsonrpc import Message
from execution.protocols.mcp.rpcerrors import INVALID_PARAMS, UNSUPPORTED_VERSION, RpcError

MODERN = ("2026-07-28",)
LEGACY = ("2025-11-25", "2025-06-18", "2025-03-26")
SUPPORTED = (*MODERN, *LEGACY)
VERSION = "io.modelcontextprotocol/protocolVersion"
CAPABILITIES = "io.modelcontextprotocol/clientCapabilities"


def era_of(message: Message, given: Mapping[str, str]) -> Era:
    """Modern is who says so in the message, or in the header; whoever begins with a handshake is not."""
    if VERSION in message.meta or CAPABILITIES in message.meta or given.get(headers.VERSION) in MODERN:
        return Era.MODERN
    return Era.LEGACY


def modern_version(message: Message, given: Mapping[str, str]) -> str:
    """The version of a modern request, which says it twice and the same; RpcError otherwise."""
    if headers.VERSION not in given:
        headers.check_version(given, None)
    for key in (VERSION, CAPABILITIES):
        if key not in message.meta:
            raise RpcError(INVALID_PARAMS, f"params._meta lacks {key}, which each request has to carry", http=400)
    headers.check_version(given, message.meta[VERSION])
    if given[headers.VERSION] not in MODERN:
        raise unsupported(given[headers.VERSION], MODERN)
    if not isinstance(message.meta[CAPABILITIES], dict):
        raise RpcError(INVALID_PARAMS, f"params._meta[{CAPABILITIES!r}] must be a JSON object", http=400)
    return given[headers.VERSION]


def check_legacy(given: Mapping[str, str]) -> None:
    """A header that names a version names one that we speak; it may be absent, as it was in the first revision."""
    if given.get(headers.VERSION, LEGACY[0]) not in LEGACY:
        raise unsupported(given[headers.VERSION], SUPPORTED)


def negotiated(wanted: Any) -> str:
    """The version of a new session: the one that was asked for, else our latest that begins with a handshake."""
    return wanted if wanted in LEGACY else LEGACY[0]


def unsupported(wanted: str, spoken: tuple[str, ...]) -> RpcError:
    """A modern client is told what `server/discover` tells: it could not carry its request over to a handshake."""
    data = {"supported": list(spoken), "requested": wanted}
    return RpcError(UNSUPPORTED_VERSION, "Unsupported protocol version", data, http=400)
