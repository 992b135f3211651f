"""ToolRef: "Mail.Send@1.2.0", parsed and printed."""

import re
from dataclasses import dataclass

# The digits are bounded so that a version always fits the database's integers.
_GRAMMAR = re.compile(
    r"(?P<toolkit>[A-Za-z0-9_]{1,64})\.(?P<tool>[A-Za-z0-9_]{1,64})"
    r"(?:@(?P<major>[0-9]{1,9})(?:\.(?P<minor>[0-9]{1,9})\.(?P<patch>[0-9]{1,9}))?)?"
)


_FLAT = re.compile(r"[A-Za-z0-9_]{1,64}")


@dataclass(frozen=True, slots=True)
class ToolRef:
    """A tool as a caller names it; no version means the latest, no toolkit that `tool` is the flat name."""

    toolkit: str
    tool: str
    version: tuple[int, int, int] | None = None

    @classmethod
    def parse(cls, text: str) -> "ToolRef | None":
        """Toolkit.Tool, Toolkit.Tool@x (exactly x.0.0) or Toolkit.Tool@x.y.z; anything else is None."""
        match = _GRAMMAR.fullmatch(text)
        if match is None:
            return None
        toolkit, tool, major, minor, patch = match.groups()
        if major is None:
            return cls(toolkit, tool)
        return cls(toolkit, tool, (int(major), int(minor or 0), int(patch or 0)))

    @classmethod
    def parse_flat(cls, text: str) -> "ToolRef | None":
        """Toolkit_Tool, where the registry knows which is which; anything else is None."""
        return cls("", text) if _FLAT.fullmatch(text) is not None else None

    @property
    def flat_name(self) -> str:
        """The name where dots are not allowed: Toolkit_Tool."""
        return f"{self.toolkit}_{self.tool}" if self.toolkit else self.tool

    @property
    def name(self) -> str:
        """What was asked for, whichever version of it."""
        return f"{self.toolkit}.{self.tool}" if self.toolkit else self.tool

    def __str__(self) -> str:
        return self.name if self.version is None else f"{self.name}@{'.'.join(map(str, self.version))}"
