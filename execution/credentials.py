"""Credentials: what Placet brings to a tool for one attempt, ready to be sent, and never printed."""

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Credentials:
    """By name what may be told, by value what only the tool may see."""

    profile: str = ""
    secret_ref: str = ""
    scopes: tuple[str, ...] = ()
    headers: Mapping[str, str] = field(default_factory=dict)  # for HTTP; gRPC sends them as metadata
    environment: Mapping[str, str] = field(default_factory=dict)  # TOOL_AUTH_*, for containers
    needles: Mapping[str, str] = field(default_factory=dict)  # the secret's name to its value, for the redactor

    def __repr__(self) -> str:
        return f"Credentials({self.profile or 'none'})"


NO_CREDENTIALS = Credentials()
