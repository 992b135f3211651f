"""Verdict: what one check found, in one line."""

import json
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

MAX_SHOWN = 80


class Outcome(StrEnum):
    PASS = "pass"
    FAIL = "fail"
    NOT_APPLICABLE = "not applicable"


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """One row of the table."""

    group: str
    check: str
    outcome: Outcome
    reason: str

    def as_json(self) -> dict[str, str]:
        return {"group": self.group, "check": self.check, "outcome": self.outcome.value, "reason": self.reason}


class Failed(Exception):
    """The endpoint breaks the contract here; the message is the reason."""


class NotApplicable(Exception):
    """Nothing can be said here; the message is why."""


def shown(value: Any) -> str:
    """What an endpoint said, harmless for a terminal and short."""
    text = json.dumps(value)
    return text if len(text) <= MAX_SHOWN else f"{text[:MAX_SHOWN]}…"
