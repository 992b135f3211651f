"""Rules as someone hands them in, as JSON or as a policy file: taken whole, or refused with every place and reason."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from policy import policyfile, rulechecks
from policy.policyfile import PolicyFile
from policy.rulechecks import Problem
from policy.rulespec import RuleSpec, read_rule
from registry.fields import ManifestError

RULES = "rules"


@dataclass(frozen=True, slots=True, kw_only=True)
class Flaw:
    """What is wrong, at which path such as rules[3].when, and on which line if it came as a text."""

    path: str
    reason: str
    line: int | None = None

    def as_json(self) -> dict[str, Any]:
        return asdict(self)

    def __str__(self) -> str:
        return ": ".join(
            [*([f"line {self.line}"] if self.line else []), *([self.path] if self.path else []), self.reason]
        )


class Flawed(Exception):
    """Rules that cannot be taken; nothing was written."""

    def __init__(self, flaws: Sequence[Flaw]) -> None:
        super().__init__(str(flaws[0]))
        self.flaws = list(flaws)


def from_json(data: Sequence[Any]) -> list[RuleSpec]:
    """Rules in a policy file's spelling; every one of them is looked at before any is refused."""
    rules, flaws = [], []
    for place, item in enumerate(data[: rulechecks.MAX_RULES + 1]):
        try:
            rules.append(read_rule(item, f"{RULES}[{place}]"))
        except ManifestError as error:
            flaws.append(_flaw(error))
    flaws = flaws or [Flaw(path=_path(problem), reason=problem.reason) for problem in rulechecks.problems(rules)]
    if flaws:
        raise Flawed(flaws)
    return rules


def from_text(text: str) -> PolicyFile:
    """A policy file whose rules can be saved."""
    try:
        file = policyfile.parse(text)
    except ManifestError as error:
        raise Flawed([_flaw(error)]) from error
    if problems := rulechecks.problems(file.rules):
        raise Flawed([_flaw(file.located(problem)) for problem in problems])
    return file


def _flaw(error: ManifestError) -> Flaw:
    return Flaw(path=error.path, reason=error.reason, line=error.line)


def _path(problem: Problem) -> str:
    return RULES if problem.place is None else f"{RULES}[{problem.place}].{problem.field}"
