"""Headers as they go out and come in: nothing that could end a line early or move the end of a message."""

import re
from collections.abc import Iterable, Mapping

from execution.egress.errors import EgressDenied

_NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]{1,100}")
_VALUE = re.compile(r"(?:[!-~\x80-\xff](?:[\t -~\x80-\xff]*[!-~\x80-\xff])?)?")
MAX_VALUE = 16_000

# Ours alone: they decide who is spoken to, and where a message ends.
_RESERVED = frozenset(
    (
        *("accept-encoding", "connection", "content-length", "expect", "host", "http2-settings", "keep-alive"),
        *("proxy-authenticate", "proxy-authorization", "proxy-connection", "te", "trailer", "transfer-encoding"),
        *("upgrade", "via"),
    )
)


def merged(own: Mapping[str, str], brought: Mapping[str, str]) -> dict[str, str]:
    """Both together; what a tool's credentials bring may stand beside our own headers, never in their place."""
    names = {name.lower() for name in own}
    for name in brought:
        if name.lower() in names:
            raise EgressDenied(f"the header {name} is ours and cannot carry a credential")
    return {**brought, **own}


def lines(headers: Mapping[str, str]) -> Iterable[bytes]:
    """Each header as it is sent; EgressDenied for one that must not be, which never repeats its value."""
    seen: set[str] = set()
    for name, value in headers.items():
        if not _NAME.fullmatch(name):
            raise EgressDenied("a header's name holds characters that no header has")
        if name.lower() in _RESERVED or name.lower() in seen:
            raise EgressDenied(f"the header {name} is not the tool's to set, or is set twice")
        if len(value) > MAX_VALUE or not _VALUE.fullmatch(value):
            raise EgressDenied(f"the value of the header {name} cannot be sent")
        seen.add(name.lower())
        yield f"{name}: {value}\r\n".encode("latin-1")


class Headers(dict[str, str]):
    """Of an answer; names in lower case, repeated ones joined by a comma."""

    def add(self, name: str, value: str) -> None:
        name = name.lower()
        self[name] = f"{self[name]}, {value}" if name in self else value

    def value(self, name: str) -> str:
        return self.get(name.lower(), "")
