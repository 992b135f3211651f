"""Decision: the answer to a question, with everything that led to it."""

from dataclasses import dataclass
from enum import StrEnum
from typing import Any


class Effect(StrEnum):
    """What may happen, in ascending strictness."""

    ALLOW = "allow"
    ASK = "ask"
    DENY = "deny"


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """What one check said, and the smallest thing that would help if it was not yes."""

    check: str
    effect: Effect
    reason: str
    help: str = ""

    def as_json(self) -> dict[str, str]:
        told = {"check": self.check, "effect": self.effect.value, "reason": self.reason}
        return told | {"help": self.help} if self.help else told


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """Effect, reason, and every check that spoke."""

    effect: Effect
    rule: str  # the check or rule that decided
    reason: str
    help: str
    revision: int  # of the policy that was asked
    findings: tuple[Finding, ...]

    def as_json(self) -> dict[str, Any]:
        return {
            "effect": self.effect.value,
            "rule": self.rule,
            "reason": self.reason,
            "revision": self.revision,
            "checks": [finding.as_json() for finding in self.findings],
        }
