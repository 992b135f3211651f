"""`make conformance`: the official MCP suite against the product, on both wires, beside a written baseline.

CONFORMANCE_OUTPUT=folder keeps what the suite wrote about each check.
"""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
import time
from pathlib import Path

from tests.conformance import suite, tools
from tests.conformance.mount import mounted
from tests.conformance.verdict import Expected, Verdict, judge, read_baseline, read_results, table

BASELINE = Path(__file__).parent / "baseline.yml"
WIRES = ("2026-07-28", "2025-11-25")
SECOND_TRIES = 3  # the suite gives some answers half a second, which a busy machine may need for something else


def main() -> int:
    if lack := tools.lack():
        print(f"Not run: {lack}", file=sys.stderr)
        return 1
    baseline = read_baseline(BASELINE)
    with tempfile.TemporaryDirectory(prefix="placet-conformance-") as folder:
        with mounted(Path(folder) / "home") as url:
            is_good = [examine(url, wire, baseline[wire], Path(folder) / wire) for wire in WIRES]
        if kept := os.environ.get("CONFORMANCE_OUTPUT"):
            for wire in WIRES:
                shutil.copytree(Path(folder) / wire, Path(kept) / wire, dirs_exist_ok=True)
    return 0 if all(is_good) else 1


def examine(url: str, wire: str, expected: dict[str, Expected], output: Path) -> bool:
    """Run everything that a revision requires, and print what came of it; whether it is what was expected."""
    began = time.monotonic()
    scenarios = suite.required(wire)
    suite.run_all(url, wire, output / "all")
    verdicts = [judge(found, expected.get(found.scenario)) for found in read_results(output / "all", scenarios)]
    if 0 < sum(verdict.word == "FAIL" for verdict in verdicts) <= SECOND_TRIES:
        verdicts = [
            again(url, wire, verdict, expected, output) if verdict.word == "FAIL" else verdict for verdict in verdicts
        ]
    print(f"\nMCP {wire}, suite {tools.version_of('@modelcontextprotocol/conformance')}\n")
    print("\n".join(table(verdicts)))
    not_run = set(expected) - {verdict.found.scenario for verdict in verdicts}
    if not_run:
        print(f"The baseline speaks of scenarios that were not run: {', '.join(sorted(not_run))}")
    passed, known = (sum(verdict.word == word for verdict in verdicts) for word in ("pass", "known"))
    bad = len(verdicts) - passed - known
    print(f"\n{passed} pass, {known} known not to, {bad} unexpected, in {time.monotonic() - began:.0f} s", flush=True)
    return bad == 0 and not not_run


def again(url: str, wire: str, first: Verdict, expected: dict[str, Expected], output: Path) -> Verdict:
    """A scenario once more; what it finds then counts, and the table says so."""
    scenario = first.found.scenario
    suite.run_one(url, wire, scenario, output / scenario)
    (found,) = read_results(output / scenario, {scenario: first.found.is_scored})
    second = judge(found, expected.get(scenario))
    return Verdict(found, second.word, f"{second.remark} (at the second try)".strip()) if second.is_good else first


if __name__ == "__main__":
    sys.exit(main())
