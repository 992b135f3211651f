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
class Ask:
    """Whom to ask, how many must agree, and how long each step may take; times in seconds."""

    approvers: str = ""  # a group; empty: whoever has the permission to approve on the toolkit
    quorum: int = 1
    decide_within: int = 86_400
    run_within: int = 3_600

    def as_json(self) -> dict[str, Any]:
        return {
            "approvers": self.approvers,
            "quorum": self.quorum,
            "decide_within": self.decide_within,
            "run_within": self.run_within,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """How often one agent may call one tool; None: as often as it likes."""

    per_minute: int | None = None
    per_day: int | None = None
    at_once: int | None = None

    def as_json(self) -> dict[str, int | None]:
        return {"per_minute": self.per_minute, "per_day": self.per_day, "at_once": self.at_once}


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """Effect, reason, and every check that spoke."""

    effect: Effect
    rule: str  # the check or rule that decided
    reason: str
    help: str
    revision: int  # of the policy that was asked
    findings: tuple[Finding, ...]
    ask: Ask | None = None  # with the effect ASK, always
    limits: Limits | None = None

    def as_json(self) -> dict[str, Any]:
        told: dict[str, Any] = {
            "effect": self.effect.value,
            "rule": self.rule,
            "reason": self.reason,
            "revision": self.revision,
            "checks": [finding.as_json() for finding in self.findings],
        }
        if self.ask is not None:
            told["ask"] = self.ask.as_json()
        if self.limits is not None:
            told["limits"] = self.limits.as_json()
        return told
