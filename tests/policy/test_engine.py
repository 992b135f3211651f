"""The engine answers by the live revision, keeps to it at once, and denies when anything inside it fails."""

import dataclasses
from collections.abc import Callable
from typing import Any

import pytest
from django.contrib.auth.models import Group
from django.test import Client
from guardian.shortcuts import assign_perm, remove_perm

from policy import engine, revisions, rulesets
from policy.agents import NewAgent
from policy.authentication import authenticate
from policy.caller import Caller
from policy.decision import Ask, Effect
from policy.models import Revision
from policy.question import Question
from policy.rulespec import RuleSpec
from registry.resolution import resolve
from registry.toolref import ToolRef
from registry.toolspec import ToolSpec
from tests.factories.registry import published
from tests.policy.rules import rule


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


def activate(*rules: RuleSpec) -> Revision:
    return revisions.activate(revisions.new_draft(by=None, rules=rules), by=None)


@pytest.mark.parametrize(
    ("risk", "effect", "asked"),
    [
        ("low", Effect.ALLOW, None),
        ("medium", Effect.ALLOW, None),
        ("high", Effect.ASK, Ask(quorum=1)),
        ("critical", Effect.ASK, Ask(quorum=2)),
    ],
)
def test_without_a_policy_low_and_medium_run_high_asks_one_and_critical_two(
    caller: Caller, risk: str, effect: Effect, asked: Ask | None
) -> None:
    decision = engine.decide(ask(caller, tool(risk)))
    assert (decision.effect, decision.rule, decision.revision, decision.ask) == (effect, "default", 0, asked)
    assert [finding.check for finding in decision.findings] == ["permission", "default"]
    if effect is Effect.ASK:
        assert "person" in decision.reason or "people" in decision.reason
        assert decision.help


def test_without_the_permission_to_call_the_answer_is_no_and_says_whom_to_ask(
    caller: Caller, made: NewAgent, toolkit: Any
) -> None:
    remove_perm("registry.call_toolkit", made.agent.user, toolkit)
    assign_perm("registry.view_toolkit", made.agent.user, toolkit)
    activate(rule("everything goes"))
    spec = tool()
    assert not engine.is_barred(caller, spec)
    decision = engine.decide(ask(caller, spec))
    assert (decision.effect, decision.rule) == (Effect.DENY, "permission")
    assert [finding.check for finding in decision.findings] == ["permission"]
    assert "'call'" in decision.help
    assert "POST /api/access-requests/" in decision.help
    assign_perm("registry.call_toolkit", made.agent.user, toolkit)
    assert engine.decide(ask(caller, spec)).as_json()["checks"][0]["effect"] == "allow"


def test_a_revision_counts_from_the_moment_it_is_live_and_no_longer(caller: Caller) -> None:
    spec = tool()
    first = revisions.new_draft(by=None, rules=[rule("closed", "deny")])
    assert engine.decide(ask(caller, spec)).effect is Effect.ALLOW
    revisions.activate(first, by=None)
    decision = engine.decide(ask(caller, spec))
    assert (decision.effect, decision.rule, decision.revision) == (Effect.DENY, "closed", 1)
    activate(rule("open"))
    decision = engine.decide(ask(caller, spec))
    assert (decision.effect, decision.rule, decision.revision) == (Effect.ALLOW, "open", 2)
    revisions.activate(first, by=None)
    assert engine.decide(ask(caller, spec)).rule == "closed"


def test_a_group_joined_left_or_renamed_counts_at_once(caller: Caller, made: NewAgent) -> None:
    spec, group = tool(), Group.objects.create(name="bots")
    activate(rule("no bots", "deny", groups=["bots"]))
    assert engine.decide(ask(caller, spec)).effect is Effect.ALLOW
    made.agent.user.groups.add(group)
    assert engine.decide(ask(caller, spec)).rule == "no bots"
    Group.objects.filter(pk=group.pk).update(name="robots")
    assert engine.decide(ask(caller, spec)).rule == "default"
    Group.objects.filter(pk=group.pk).update(name="bots")
    assert engine.decide(ask(caller, spec)).rule == "no bots"
    made.agent.user.groups.remove(group)
    assert engine.decide(ask(caller, spec)).rule == "default"


def test_a_draft_is_judged_as_it_is_now_and_the_shadow_as_it_was_made(caller: Caller) -> None:
    spec = tool()
    draft = revisions.new_draft(by=None, rules=[rule("first", "deny")])
    assert rulesets.rules_numbered(1).judge(ask(caller, spec)).rule == "first"
    revisions.replace_rules(draft, [rule("second", "deny")], by=None)
    assert rulesets.rules_numbered(1).judge(ask(caller, spec)).rule == "second"
    assert rulesets.rules_numbered(0).judge(ask(caller, spec)).rule == "default"
    with pytest.raises(Revision.DoesNotExist):
        rulesets.rules_numbered(9)
    assert rulesets.shadow_rules() is None
    revisions.set_shadow(draft, by=None)
    shadow = rulesets.shadow_rules()
    assert shadow is not None
    assert (shadow.number, shadow.judge(ask(caller, spec)).rule) == (1, "second")
    assert engine.decide(ask(caller, spec)).effect is Effect.ALLOW
    Group.objects.create(name="something else that moves the registry on")
    assert rulesets.shadow_rules() is shadow
    revisions.set_shadow(None, by=None)
    revisions.replace_rules(draft, [rule("third", "deny")], by=None)
    revisions.set_shadow(draft, by=None)
    shadow = rulesets.shadow_rules()
    assert shadow is not None
    assert shadow.judge(ask(caller, spec)).rule == "third"


def test_what_the_live_rules_remember_outlives_other_changes(caller: Caller) -> None:
    activate(rule("open"))
    rules = rulesets.live_rules()
    Group.objects.create(name="something else that moves the registry on")
    assert rulesets.live_rules() is rules
    assert rulesets.rules_numbered(1) is rules


def test_judging_asks_the_database_for_nothing_until_something_changes(
    caller: Caller, django_assert_num_queries: Callable[..., Any]
) -> None:
    spec = tool()
    activate(rule("small", when="input.a < 5.0"), rule("bots", "deny", groups=["bots"]))
    engine.decide(ask(caller, spec))
    with django_assert_num_queries(0):  # the glance at the revision does not count
        assert engine.decide(ask(caller, spec)).rule == "small"


def test_what_fails_inside_policy_denies_and_tells_the_log_but_not_the_caller(
    caller: Caller, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def broken(question: Question) -> Any:
        raise RuntimeError("internal detail")

    spec = tool()
    monkeypatch.setattr(rulesets, "permission", broken)
    decision = engine.decide(ask(caller, spec))
    assert (decision.effect, decision.rule) == (Effect.DENY, "error")
    assert decision.help
    assert "internal detail" not in str(decision.as_json())
    assert "internal detail" in caplog.text


def test_a_stored_condition_that_cannot_be_read_denies_and_names_its_rule(caller: Caller) -> None:
    spec = tool()
    draft = revisions.new_draft(by=None, rules=[rule("odd", when="input.a > 5.0")])
    draft.rules.update(when="input.a >")
    assert (rulesets.rules_numbered(1).judge(ask(caller, spec)).effect) is Effect.DENY
    assert rulesets.rules_numbered(1).judge(ask(caller, spec)).rule == "odd"


def test_a_question_cannot_be_changed_after_it_was_asked(caller: Caller) -> None:
    question = ask(caller, tool())
    with pytest.raises(dataclasses.FrozenInstanceError):
        question.caller = caller  # type: ignore[misc]


def test_a_decision_tells_every_check_that_spoke(caller: Caller) -> None:
    told = engine.decide(ask(caller, tool("high"))).as_json()
    assert [check["check"] for check in told["checks"]] == ["permission", "default"]
    assert told["effect"] == "ask"
    assert told["ask"] == {"approvers": "", "quorum": 1, "decide_within": 86_400, "run_within": 3_600}


@pytest.mark.parametrize("profile", ["oxp", "otc"])
def test_a_tool_that_a_rule_forbids_for_good_is_not_listed_but_its_call_is_answered(
    made: NewAgent, caller: Caller, client: Client, profile: str
) -> None:
    published("Calculator", "1.0.0", {"name": "Add"}, {"name": "Divide"})
    headers = {"Authorization": f"Bearer {made.key}"}

    def listed() -> list[str]:
        tools = client.get(f"/tools?profile={profile}", headers=headers).json()
        return [name for name in ("Add", "Divide") if name in str(tools)]

    assert listed() == ["Add", "Divide"]
    activate(
        rule("no dividing", "deny", tools=["Calculator.Divide"], agents=["demo"]),
        rule("not too much", "deny", tools=["Calculator.Add"], when="input.a > 5.0"),
        rule("not for others", "deny", agents=["other"]),
    )
    assert listed() == ["Add"]
    body = {"tool_id": "Calculator.Divide@1.0.0", "call_id": "1", "input": {"a": 1, "b": 2}}
    answer = client.post(
        "/tools/call", {"$schema": "urn:oxp:1.0", "request": body}, content_type="application/json", headers=headers
    )
    assert "no dividing" in answer.content.decode()
    activate()
    assert listed() == ["Add", "Divide"]


def test_a_list_is_made_once_for_callers_who_see_the_same(
    made: NewAgent, caller: Caller, django_assert_num_queries: Callable[..., Any]
) -> None:
    from execution.protocols.listing import Listings
    from policy import agents

    published("Calculator", "1.0.0", {"name": "Add"}, {"name": "Divide"})
    activate(rule("no dividing", "deny", tools=["Calculator.Divide"], agents=["demo"]))
    others = [
        authenticate({"OXP-API-Key": agents.create(name, actor="shell", call=["Calculator"]).key})
        for name in ("other", "third")
    ]
    encoded: list[list[str]] = []

    def encode(tools: tuple[ToolSpec, ...]) -> bytes:
        encoded.append([each.name for each in tools])
        return str(encoded[-1]).encode()

    listings = Listings(encode)
    for _ in range(2):
        for each in (caller, *others):
            listings.of(each)
    assert encoded == [["Add"], ["Add", "Divide"]]
    with django_assert_num_queries(0):
        assert listings.of(others[0]) is listings.of(others[1])
