"""The suite's findings are held against a baseline: worse is a failure, and so is better, until it is written down."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from tests.conformance.verdict import Expected, Found, judge, read_baseline, read_results, table


def found(**checks: str) -> Found:
    return Found("a-scenario", True, [(id, status, f"about {id}") for id, status in checks.items()])


def test_a_scenario_without_failures_passes() -> None:
    assert judge(found(a="SUCCESS", b="SKIPPED", c="WARNING"), None).word == "pass"


def test_a_pass_without_anything_tried_says_so() -> None:
    for checks in ({"a": "SKIPPED"}, {"wire-schema-valid": "SUCCESS", "b": "WARNING"}):
        assert judge(Found("x", True, [(id, status, "") for id, status in checks.items()]), None).remark
    assert judge(found(a="SUCCESS"), None).remark == ""


def test_a_failure_that_nobody_expected_is_told_with_its_message() -> None:
    verdict = judge(found(a="SUCCESS", b="FAILURE"), None)
    assert (verdict.word, verdict.is_good, verdict.remark) == ("FAIL", False, "b: about b")


def test_an_expected_failure_is_known_and_says_why() -> None:
    for checks in (frozenset({"b"}), "all"):
        verdict = judge(found(a="SUCCESS", b="FAILURE"), Expected("we have no prompts", checks))
        assert (verdict.word, verdict.is_good, verdict.remark) == ("known", True, "we have no prompts")


def test_another_check_than_the_expected_one_is_a_failure() -> None:
    assert judge(found(a="FAILURE", b="FAILURE"), Expected("", frozenset({"b"}))).remark == "a: about a"


@pytest.mark.parametrize("checks", [frozenset({"a", "b"}), "all"])
def test_an_expected_failure_that_does_not_come_must_leave_the_baseline(checks: frozenset[str] | str) -> None:
    status = "SUCCESS" if checks == "all" else "FAILURE"
    verdict = judge(found(a="SUCCESS", b=status), Expected("", checks))
    assert (verdict.word, verdict.is_good) == ("BETTER", False)


def test_a_scenario_without_a_result_fails_even_if_it_was_to_fail() -> None:
    assert judge(Found("a-scenario", True), Expected("", "all")).word == "FAIL"


def test_results_are_read_per_scenario_and_missing_ones_are_told(tmp_path: Path) -> None:
    place = tmp_path / "server-tools-list-2026-11-16T10-00-00-000Z"
    place.mkdir()
    (place / "checks.json").write_text(json.dumps([{"id": "x", "status": "FAILURE", "errorMessage": "no"}]))
    (tmp_path / "said.txt").write_text("noise")
    results = read_results(tmp_path, {"tools-list": True, "ping": False})
    assert [(one.scenario, one.is_scored, one.checks) for one in results] == [
        ("tools-list", True, [("x", "FAILURE", "no")]),
        ("ping", False, []),
    ]


def test_the_table_has_a_line_for_each_scenario() -> None:
    head, line = table([judge(found(a="SUCCESS", b="FAILURE"), Expected("because", "all"))])
    assert head.split() == ["scenario", "scored", "checks", "result"]
    assert line.split() == ["a-scenario", "yes", "1/2", "known:", "because"]


def test_every_entry_of_the_baseline_has_a_reason(tmp_path: Path) -> None:
    read_baseline(Path(__file__).parent / "baseline.yml")
    wrong = tmp_path / "baseline.yml"
    wrong.write_text('reasons: {prompts: none}\nwires: {"2026-07-28": {}}\n')
    with pytest.raises(ValueError, match="nobody needs the reason prompts"):
        read_baseline(wrong)


def test_without_npm_it_is_said_what_to_install(tmp_path: Path) -> None:
    for name in ("dirname", "mkdir", "cp"):
        (tmp_path / name).symlink_to(f"/bin/{name}")
    script = Path(__file__).parents[2] / "scripts" / "conformance-tools"
    ran = subprocess.run(["/bin/sh", str(script)], env={"PATH": str(tmp_path)}, capture_output=True, text=True)
    assert ran.returncode == 1
    assert "apt install nodejs npm" in ran.stderr
