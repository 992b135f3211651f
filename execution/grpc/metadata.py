"""Metadata as it goes out: what a credential brings never stands in for what gRPC itself says."""

import re
from collections.abc import Mapping
from urllib.parse import unquote_to_bytes

from hpack import HeaderTuple, NeverIndexedHeaderTuple

from execution.egress import EgressDenied
from execution.egress.headers import lines

_VALUE = re.compile(r"[ -~]*")


def sent(metadata: Mapping[str, str]) -> list[HeaderTuple]:
    """Names in lower case, values that no table on the way remembers; EgressDenied, which never repeats a value."""
    list(lines(metadata))  # what may not be a header of HTTP may not be one here
    for name, value in metadata.items():
        if name.lower() == "content-type" or name.lower().startswith("grpc-"):
            raise EgressDenied(f"the metadata {name} is not the tool's to set")
        if name.lower().endswith("-bin") or not _VALUE.fullmatch(value):
            raise EgressDenied(f"the value of the metadata {name} cannot be sent as text")
    return [NeverIndexedHeaderTuple(name.lower(), value) for name, value in metadata.items()]


def received(headers: list[tuple[bytes, bytes]]) -> dict[str, str]:
    """What came, by name; a name that comes twice keeps what was said first."""
    found: dict[str, str] = {}
    for name, value in headers:
        found.setdefault(name.decode("latin-1").lower(), value.decode("latin-1"))
    return found


def message_of(metadata: Mapping[str, str]) -> str:
    """The words to a status, which come percent-encoded."""
    return unquote_to_bytes(metadata.get("grpc-message", "")).decode("utf-8", "replace")
