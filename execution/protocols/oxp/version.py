"""The one version of OXP that we speak, and the names it goes by."""

import re
from typing import Any

from execution.protocols.dialect import Refusal
from execution.protocols.shape import invalid

SCHEMA = "urn:oxp:1.0"
NAMES = frozenset(
    {
        SCHEMA,
        "https://github.com/OpenToolCalling/Specification/tree/main/spec/http/1.0/openapi.json",
        "https://github.com/OpenExecProtocol/Specification/tree/main/spec/http/1.0/openapi.json",
    }
)
_URI = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:[!-~]+")


def check(envelope: dict[str, Any], names: frozenset[str] = NAMES, speaks: str = SCHEMA) -> None:
    """A client that names no version takes our latest; one that names another is told which we speak."""
    if "$schema" not in envelope:
        return
    named = envelope["$schema"]
    if type(named) is not str or _URI.fullmatch(named) is None:
        raise invalid("$schema must be a URI")
    if named in names:
        return
    raise Refusal(
        "unsupported_version",
        "This version of the protocol is not supported",
        developer_message=f"$schema must be absent or {speaks}",
    )
