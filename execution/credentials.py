"""Credentials: what Placet brings to a tool for one attempt, ready to be sent, and never printed."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NoReturn


class Unseen(dict[str, str]):
    """Texts by name of which a repr, a pickle or a copy in a message shows nothing."""

    def __repr__(self) -> str:
        return f"<{len(self)} hidden>"

    __str__ = __repr__

    def __reduce_ex__(self, protocol: Any) -> NoReturn:
        raise TypeError("secrets are not pickled")


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Credentials:
    """By name what may be told, by value what only the tool may see."""

    profile: str = ""
    secret_ref: str = ""
    scopes: tuple[str, ...] = ()
    headers: Mapping[str, str] = field(default_factory=dict)  # for HTTP; gRPC sends them as metadata
    environment: Mapping[str, str] = field(default_factory=dict)  # TOOL_AUTH_*, for containers
    needles: Mapping[str, str] = field(default_factory=dict)  # the secret's name to its value, for the redactor

    def __post_init__(self) -> None:
        for name in ("headers", "environment", "needles"):
            object.__setattr__(self, name, Unseen(getattr(self, name)))

    def __repr__(self) -> str:
        return f"Credentials({self.profile or 'none'})"

    def __reduce_ex__(self, protocol: Any) -> NoReturn:
        raise TypeError("credentials are not pickled: they are resolved where they are used")


NO_CREDENTIALS = Credentials()
