"""Mcp-Param-*: what a modern client repeats of its arguments in headers says the same as the arguments do."""

from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from execution.protocols.mcp.definitions import for_models
from execution.protocols.mcp.exchange import Era, Exchange
from execution.protocols.mcp.headers import decoded
from execution.protocols.mcp.rpcerrors import HEADER_MISMATCH, RpcError
from registry.paramheaders import marked
from registry.toolspec import ToolSpec

PREFIX = "mcp-param-"


def check(exchange: Exchange, tool: ToolSpec) -> None:
    """RpcError unless each marked argument has its header and each header its argument; only on the newer wire."""
    if exchange.era is not Era.MODERN:
        return
    arguments = exchange.params.get("arguments", {})
    for path, name in _marks(tool):
        value, header = _value(arguments, path), exchange.headers.get(PREFIX + name.lower())
        if value is None and header is None:
            continue
        if value is None:
            raise _mismatch(name, "is sent, but the argument that it repeats is not")
        if header is None:
            raise _mismatch(name, f"is missing: the argument {'.'.join(path)} has to be repeated in it")
        try:
            told = decoded(header)
        except ValueError:
            raise _mismatch(name, "is not valid base64, or holds characters that a header can not have") from None
        if not _is_same(told, value):
            raise _mismatch(name, f"differs from the argument {'.'.join(path)}")


@lru_cache(maxsize=20_000)
def _marks(tool: ToolSpec) -> tuple[tuple[tuple[str, ...], str], ...]:
    """Of what clients are shown: what a model must not fill in has no header either."""
    return tuple((path, name) for path, name, _ in marked(for_models(tool)))


def _value(arguments: Any, path: tuple[str, ...]) -> Any:
    for name in path:
        arguments = arguments.get(name) if isinstance(arguments, Mapping) else None
    return arguments


def _is_same(told: str, value: Any) -> bool:
    """Texts letter by letter, whole numbers by what they are worth; anything else the tool's schema refuses anyway."""
    if isinstance(value, bool):
        return told == ("true" if value else "false")
    if isinstance(value, int | float):
        try:
            return float(told) == float(value) and int(float(told)) == int(value)
        except (ValueError, OverflowError):
            return False
    return told == value if isinstance(value, str) else True


def _mismatch(name: str, why: str) -> RpcError:
    return RpcError(HEADER_MISMATCH, f"Header mismatch: Mcp-Param-{name} {why}", http=400)
