"""RpcError: a request that is answered with a JSON-RPC error, and the codes there are."""

from collections.abc import Mapping
from typing import Any

PARSE_ERROR = -32700
INVALID_REQUEST = -32600
METHOD_NOT_FOUND = -32601
INVALID_PARAMS = -32602
INTERNAL_ERROR = -32603
HEADER_MISMATCH = -32020
MISSING_CAPABILITY = -32021
UNSUPPORTED_VERSION = -32022
URL_ELICITATION_REQUIRED = -32042  # in revision 2025-11-25 only
# Our own refusals, outside of the range that JSON-RPC and MCP keep for themselves.
UNAUTHENTICATED = 40100
FORBIDDEN = 40300
TOO_MANY = 42900
UNAVAILABLE = 50300


class RpcError(Exception):
    """What a handler raises to refuse; `http` is the status where the client's revision gives errors one.

    `is_recorded` says that the trail has it already, as it has every call that was admitted or turned away.
    """

    def __init__(
        self,
        code: int,
        message: str,
        data: Mapping[str, Any] | None = None,
        *,
        http: int = 200,
        headers: Mapping[str, str] | None = None,
        is_recorded: bool = False,
    ) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.data = data
        self.http = http
        self.headers: Mapping[str, str] = headers or {}
        self.is_recorded = is_recorded

    def as_error(self) -> dict[str, Any]:
        """The error object of a JSON-RPC response."""
        error: dict[str, Any] = {"code": self.code, "message": self.message}
        return error if self.data is None else {**error, "data": dict(self.data)}
