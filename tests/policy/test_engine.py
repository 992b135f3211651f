"""The engine asks every check; the strictest answer decides, and an error denies."""

import dataclasses
from typing import Any

import pytest
from guardian.shortcuts import assign_perm, remove_perm

from policy import engine
from policy.agents import NewAgent
from policy.authentication import authenticate
from policy.caller import Caller
from policy.checks import CHECKS
from policy.decision import Effect, Finding
from policy.question import Question
from registry.resolution import resolve
from registry.toolref import ToolRef
from registry.toolspec import ToolSpec
from tests.factories.registry import published


@pytest.fixture
def caller(made: NewAgent) -> Caller:
    return authenticate({"OXP-API-Key": made.key})


def tool(risk: str = "low", version: str = "1.0.0") -> ToolSpec:
    published("Calculator", version, {"risk": risk})
    found = resolve(ToolRef.parse(f"Calculator.Add@{version}"))  # type: ignore[arg-type]
    assert found is not None
    return found


def ask(caller: Caller, spec: ToolSpec) -> Question:
    return Question(caller=caller, tool=spec, arguments={"a": 1, "b": 2})


@pytest.mark.parametrize(
    ("risk", "effect"),
    [("low", Effect.ALLOW), ("medium", Effect.ALLOW), ("high", Effect.DENY), ("critical", Effect.DENY)],
)
def test_low_and_medium_run_and_the_rest_needs_a_person(caller: Caller, risk: str, effect: Effect) -> None:
    decision = engine.decide(ask(caller, tool(risk)))
    assert decision.effect == effect
    assert [finding.check for finding in decision.findings] == ["permission", "risk"]
    if effect == Effect.DENY:
        assert decision.rule == "risk"
        assert "person" in decision.reason
        assert decision.help


def test_without_the_permission_to_call_the_answer_is_no_and_says_whom_to_ask(
    caller: Caller, made: NewAgent, toolkit: Any
) -> None:
    remove_perm("registry.call_toolkit", made.agent.user, toolkit)
    assign_perm("registry.view_toolkit", made.agent.user, toolkit)
    decision = engine.decide(ask(caller, tool()))
    assert (decision.effect, decision.rule) == (Effect.DENY, "permission")
    assert "'call'" in decision.help


def test_the_first_of_the_strictest_findings_decides(caller: Caller, monkeypatch: pytest.MonkeyPatch) -> None:
    def finding(name: str, effect: Effect) -> Any:
        return lambda question: Finding(check=name, effect=effect, reason=name)

    spec = tool()
    for effects, winner in (
        ([Effect.ALLOW, Effect.ASK, Effect.ALLOW], "1"),
        ([Effect.ASK, Effect.DENY, Effect.DENY], "1"),
        ([Effect.ALLOW, Effect.ALLOW], "0"),
    ):
        checks = tuple(finding(str(place), effect) for place, effect in enumerate(effects))
        monkeypatch.setattr(engine, "CHECKS", checks)
        assert engine.decide(ask(caller, spec)).rule == winner


def test_a_check_that_fails_denies_and_tells_the_log_but_not_the_caller(
    caller: Caller, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def broken(question: Question) -> Finding:
        raise RuntimeError("internal detail")

    monkeypatch.setattr(engine, "CHECKS", (broken, *CHECKS))
    decision = engine.decide(ask(caller, tool()))
    assert (decision.effect, decision.rule) == (Effect.DENY, "broken")
    assert "internal detail" not in str(decision.as_json())
    assert "internal detail" in caplog.text


def test_a_question_cannot_be_changed_after_it_was_asked(caller: Caller) -> None:
    question = ask(caller, tool())
    with pytest.raises(dataclasses.FrozenInstanceError):
        question.caller = caller  # type: ignore[misc]


def test_a_decision_tells_every_check_that_spoke(caller: Caller) -> None:
    told = engine.decide(ask(caller, tool("high"))).as_json()
    assert [check["check"] for check in told["checks"]] == ["permission", "risk"]
    assert told["effect"] == "deny"
