"""Mcp-Param-*: what a modern client repeats of its arguments in headers says the same as the arguments do."""

import re
from collections.abc import Mapping
from decimal import Decimal
from functools import lru_cache
from typing import Any

from execution.protocols.mcp.definitions import for_models
from execution.protocols.mcp.exchange import Era, Exchange
from execution.protocols.mcp.headers import decoded, mismatch
from registry.paramheaders import marked
from registry.toolspec import ToolSpec

PREFIX = "mcp-param-"
_NUMBER = re.compile(r"-?[0-9]{1,40}(\.[0-9]{1,40})?(e[+-]?[0-9]{1,3})?", re.ASCII | re.IGNORECASE)


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
            raise mismatch(f"Mcp-Param-{name} is sent, but the argument that it repeats is not")
        if header is None:
            raise mismatch(f"Mcp-Param-{name} is missing: the argument {'.'.join(path)} has to be repeated in it")
        try:
            told = decoded(header)
        except ValueError:
            raise mismatch(
                f"Mcp-Param-{name} is not valid base64, or holds characters that a header can not have"
            ) from None
        if not _is_same(told, value):
            raise mismatch(f"Mcp-Param-{name} differs from the argument {'.'.join(path)}")


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
        return _NUMBER.fullmatch(told) is not None and Decimal(told) == Decimal(value)
    return told == value if isinstance(value, str) else True
