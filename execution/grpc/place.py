"""Place: where a gRPC server listens, and whether it is spoken to in the clear."""

import re
from dataclasses import dataclass

from execution.egress import EgressDenied

_FORM = re.compile(
    r"(?:(?P<scheme>grpcs?)://)?(?P<host>\[[0-9A-Fa-f]*:[0-9A-Fa-f:.]*\]|[A-Za-z0-9._-]+):(?P<port>[0-9]{1,5})"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """A host and a port, without brackets; TLS unless grpc:// is said outright."""

    host: str
    port: int
    is_tls: bool

    @property
    def authority(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host.rstrip('.')}:{self.port}"

    @property
    def scheme(self) -> str:
        return "https" if self.is_tls else "http"


def parse(endpoint: str) -> Place:
    """grpcs://host:port, grpc://host:port or host:port; EgressDenied for anything else."""
    found = _FORM.fullmatch(endpoint) if len(endpoint) <= 400 else None
    if found is None:
        raise EgressDenied("the address is not grpcs://host:port, grpc://host:port or host:port")
    return Place(
        host=found["host"].strip("[]").lower(), port=int(found["port"]), is_tls=(found["scheme"] or "grpcs") == "grpcs"
    )
