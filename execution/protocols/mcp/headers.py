"""Headers: what a modern client repeats of its message beside it says the same as the message."""

import binascii
from base64 import b64decode
from collections.abc import Mapping
from typing import Any

from execution.protocols.mcp.rpcerrors import HEADER_MISMATCH, RpcError

VERSION = "mcp-protocol-version"
SESSION = "mcp-session-id"
METHOD = "mcp-method"
NAME = "mcp-name"
_WSGI = "HTTP_MCP_"
_BEGIN, _END = "=?base64?", "?="


def mcp_headers(environ: Mapping[str, Any]) -> dict[str, str]:
    """The headers that belong to MCP, by lower-case name; no others reach a handler, least of all a credential."""
    return {
        name.removeprefix("HTTP_").replace("_", "-").lower(): value.strip(" \t")
        for name, value in environ.items()
        if name.startswith(_WSGI)
    }


def decoded(value: str) -> str:
    """A value as it was meant, base64 undone; ValueError for what no header may hold."""
    value = value.strip(" \t")
    if value.startswith(_BEGIN) and value.endswith(_END) and len(value) >= len(_BEGIN) + len(_END):
        try:
            return b64decode(value[len(_BEGIN) : -len(_END)], validate=True).decode()
        except (binascii.Error, UnicodeDecodeError) as error:
            raise ValueError("not base64 of UTF-8") from error
    if not all(" " <= character <= "~" or character == "\t" for character in value):
        raise ValueError("not plain ASCII")
    return value


def check_version(headers: Mapping[str, str], told: object) -> None:
    """The version in the header is the one in the message."""
    given = headers.get(VERSION)
    if given is None:
        raise mismatch("MCP-Protocol-Version is missing: each request has to name its version there too")
    if given != told:
        raise mismatch("MCP-Protocol-Version differs from the version in _meta")


def check_method(headers: Mapping[str, str], method: str) -> None:
    given = headers.get(METHOD)
    if given is None:
        raise mismatch(f"Mcp-Method is missing; it has to be {method}")
    if given != method:
        raise mismatch(f"Mcp-Method differs from the method {method}")


def check_name(headers: Mapping[str, str], params: Mapping[str, Any], parameter: str) -> None:
    """The header names what the message asks for; where neither does, the method's own check speaks."""
    given, told = headers.get(NAME), params.get(parameter)
    if given is None and told is None:
        return
    if given is None:
        raise mismatch(f"Mcp-Name is missing; it has to repeat params.{parameter}")
    try:
        is_same = decoded(given) == told
    except ValueError:
        raise mismatch("Mcp-Name is not valid base64, or holds characters that a header can not have") from None
    if not is_same:
        raise mismatch(f"Mcp-Name differs from params.{parameter}")


def mismatch(why: str) -> RpcError:
    return RpcError(HEADER_MISMATCH, f"Header mismatch: {why}", http=400)
