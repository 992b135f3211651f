"""The official suite: what it requires, and its runs, whose results are files."""

from __future__ import annotations

import re
from pathlib import Path

from tests.conformance import tools


def required(wire: str) -> dict[str, bool]:
    """The server scenarios of a revision, and whether they are scored."""
    listed = tools.run(tools.command("conformance", "list", "--server", "--requirements", wire), 60).stdout
    scored, _, extra = listed.partition("never scored")
    servers = scored.partition("Server scenarios")[2].partition("Client scenarios")[0]
    names = dict.fromkeys(re.findall(r"^\s+- (\S+)", servers, re.MULTILINE), True)
    return names | dict.fromkeys(re.findall(r"^\s+- (\S+) \[server\]", extra, re.MULTILINE), False)


def run_all(url: str, wire: str, output: Path) -> None:
    _run(url, output, "--requirements", wire)


def run_one(url: str, wire: str, scenario: str, output: Path) -> None:
    _run(url, output, "--scenario", scenario, "--spec-version", wire)


def _run(url: str, output: Path, *which: str) -> None:
    """Its exit code says less than its results do."""
    output.mkdir(parents=True)
    done = tools.run(tools.command("conformance", "server", "--url", url, *which, "-o", str(output)), 300)
    (output / "said.txt").write_text(f"{done.stdout}{done.stderr}\nexit code {done.returncode}\n")
