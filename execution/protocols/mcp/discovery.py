"""Discovery: who we are and what we can do, told in a handshake or when asked."""

from collections.abc import Mapping
from typing import Any

from django.conf import settings

from execution.news import LEVELS
from execution.protocols.mcp import eras, sessions, tasksupport
from execution.protocols.mcp.exchange import Era, Exchange
from execution.protocols.mcp.rpcerrors import INVALID_PARAMS, RpcError

TTL_MS = 60_000
SERVER_INFO = "io.modelcontextprotocol/serverInfo"
INSTRUCTIONS = (
    "Each call is judged by the policy of this server: it may run, be refused with the reason, or wait until a person "
    "agrees at the address that the answer names. A refusal says what would help."
)


def server_info() -> dict[str, Any]:
    version = settings.SPECTACULAR_SETTINGS["VERSION"]
    return {"name": "placet", "title": "Placet", "version": version, "websiteUrl": settings.PLACET_URL}


def capabilities(era: Era, version: str) -> dict[str, Any]:
    """What clients of this revision can ask for."""
    told: dict[str, Any] = {"tools": {"listChanged": True}, "prompts": {}, "resources": {}, "logging": {}}
    if era is Era.MODERN:
        told["extensions"] = tasksupport.EXTENSIONS
    elif version >= tasksupport.SINCE:
        told["tasks"] = tasksupport.CAPABILITY
    return told


def initialize(exchange: Exchange) -> Mapping[str, Any]:
    """The answer to a handshake; the version is the client's, or else our latest of the kind."""
    if not isinstance(exchange.params.get("protocolVersion"), str):
        raise RpcError(INVALID_PARAMS, "params.protocolVersion must be a string such as 2025-11-25")
    if not isinstance(exchange.params.get("capabilities", {}), Mapping):
        raise RpcError(INVALID_PARAMS, "params.capabilities must be a JSON object")
    version = eras.negotiated(exchange.params["protocolVersion"])
    return {
        "protocolVersion": version,
        "capabilities": capabilities(Era.LEGACY, version),
        "serverInfo": server_info(),
        "instructions": INSTRUCTIONS,
    }


def discover(exchange: Exchange) -> Mapping[str, Any]:
    """What stands in for the handshake; what it says of us may differ by caller, so nobody else may be given it."""
    return {
        "supportedVersions": list(eras.MODERN),
        "capabilities": capabilities(exchange.era, exchange.version),
        "instructions": INSTRUCTIONS,
        "ttlMs": TTL_MS,
        "cacheScope": "private",
    }


def ping(exchange: Exchange) -> Mapping[str, Any]:
    return {}


def set_level(exchange: Exchange) -> Mapping[str, Any]:
    """From now on the session hears only lines of this level and above."""
    level = exchange.params.get("level")
    if level not in LEVELS:
        raise RpcError(INVALID_PARAMS, f"params.level must be one of {', '.join(LEVELS)}")
    sessions.set_level(exchange.caller, exchange.session, str(level))
    return {}
