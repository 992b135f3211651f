"""What the suite found, beside what we said it would find: anything else is a failure, the better too."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

FAILURE, SUCCESS = "FAILURE", "SUCCESS"
ALL = "all"
WIRE = "wire-schema-valid"  # every scenario has this check
_FOLDER = re.compile(r"server-(?P<scenario>.+)-\d{4}-\d\d-\d\dT.*")


@dataclass(frozen=True)
class Expected:
    """One scenario of the baseline: which of its checks fail, and why."""

    why: str
    checks: frozenset[str] | str  # ids, or "all": then at least one fails, and which is of no interest


@dataclass
class Found:
    """One scenario as it ran."""

    scenario: str
    is_scored: bool
    checks: list[tuple[str, str, str]] = field(default_factory=list)  # id, status, message

    def count(self, *statuses: str) -> int:
        return sum(status in statuses for _, status, _ in self.checks)

    @property
    def failed(self) -> frozenset[str]:
        return frozenset(id for id, status, _ in self.checks if status == FAILURE)


@dataclass(frozen=True)
class Verdict:
    """One line of the table."""

    found: Found
    word: str  # "pass", "known", "FAIL", "BETTER"
    remark: str

    @property
    def is_good(self) -> bool:
        return self.word in ("pass", "known")


def read_baseline(path: Path) -> dict[str, dict[str, Expected]]:
    """By wire and scenario; every entry has a reason, and every reason is used."""
    document = yaml.safe_load(path.read_text())
    reasons: Mapping[str, str] = document["reasons"]
    told: dict[str, dict[str, Expected]] = {}
    used = set()
    for wire, scenarios in document["wires"].items():
        told[wire] = {}
        for scenario, said in scenarios.items():
            whys, checks = _said(said)
            used.update(whys)
            told[wire][scenario] = Expected("; ".join(reasons[why] for why in whys), checks)
    if unused := set(reasons) - used:
        raise ValueError(f"{path.name}: nobody needs the reason {', '.join(sorted(unused))}")
    return told


def _said(said: Any) -> tuple[list[str], frozenset[str] | str]:
    """A reason for the scenario, for some of its checks, or for each of them."""
    if isinstance(said, str):
        return [said], ALL
    if "because" in said:
        return list(dict.fromkeys(said["because"].values())), frozenset(said["because"])
    return [said["why"]], frozenset(said["checks"])


def read_results(folder: Path, scenarios: Mapping[str, bool]) -> list[Found]:
    """Every scenario that was to run; one without a result has no checks, and fails."""
    by_name = {name: Found(name, is_scored) for name, is_scored in scenarios.items()}
    for place in sorted(folder.iterdir()):
        match = _FOLDER.fullmatch(place.name)
        if match and (place / "checks.json").exists():
            name = match["scenario"]
            found = by_name.setdefault(name, Found(name, is_scored=False))
            for check in json.loads((place / "checks.json").read_text()):
                found.checks.append((check["id"], check["status"], str(check.get("errorMessage") or "")))
    return list(by_name.values())


def judge(found: Found, expected: Expected | None) -> Verdict:
    if not found.checks:
        return Verdict(found, "FAIL", "it left no result")
    if expected is None:
        return Verdict(found, "FAIL", _told(found, found.failed)) if found.failed else _passed(found)
    if expected.checks == ALL:
        return Verdict(found, "known", expected.why) if found.failed else _better(found, [found.scenario])
    if surprises := found.failed - set(expected.checks):
        return Verdict(found, "FAIL", _told(found, surprises))
    if gone := set(expected.checks) - found.failed:
        return _better(found, gone)
    return Verdict(found, "known", expected.why)


def _passed(found: Found) -> Verdict:
    """Not every pass is an achievement: the suite passes over what it cannot try."""
    if all(id == WIRE for id, status, _ in found.checks if status == SUCCESS):
        return Verdict(found, "pass", "nothing of it could be tried here")
    return Verdict(found, "pass", "")


def table(verdicts: Iterable[Verdict]) -> list[str]:
    lines = [f"{'scenario':47} {'scored':6}  {'checks':>7}  result"]
    for verdict in verdicts:
        found = verdict.found
        passed = f"{found.count(SUCCESS)}/{found.count(SUCCESS, FAILURE)}"
        remark = f": {verdict.remark}" if verdict.remark else ""
        lines.append(f"{found.scenario:47} {'yes' if found.is_scored else 'no':6}  {passed:>7}  {verdict.word}{remark}")
    return lines


def _better(found: Found, gone: Iterable[str]) -> Verdict:
    return Verdict(found, "BETTER", f"now passes, take it out of the baseline: {', '.join(sorted(gone))}")


def _told(found: Found, failed: Iterable[str]) -> str:
    wanted = set(failed)
    return " | ".join(
        f"{id}: {message[:300]}" for id, status, message in found.checks if id in wanted and status == FAILURE
    )
