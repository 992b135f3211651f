"""ToolRef: "Mail.Send@1.2.0", parsed and printed."""

import re
from dataclasses import dataclass

# The digits are bounded so that a version always fits the database's integers.
_GRAMMAR = re.compile(
    r"(?P<toolkit>[A-Za-z0-9_]{1,64})\.(?P<tool>[A-Za-z0-9_]{1,64})"
    r"(?:@(?P<major>[0-9]{1,9})(?:\.(?P<minor>[0-9]{1,9})\.(?P<patch>[0-9]{1,9}))?)?"
)


@dataclass(frozen=True, slots=True)
class ToolRef:
    """A tool as a caller names it; no version means the latest."""

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

    @property
    def flat_name(self) -> str:
        """The name where dots are not allowed: Toolkit_Tool."""
        return f"{self.toolkit}_{self.tool}"

    def __str__(self) -> str:
        if self.version is None:
            return f"{self.toolkit}.{self.tool}"
        return f"{self.toolkit}.{self.tool}@{'.'.join(map(str, self.version))}"
