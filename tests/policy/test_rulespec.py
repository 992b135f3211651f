"""A rule is read strictly, says itself in plain English, and is written back as it was read."""

from typing import Any

import pytest

from policy.decision import Ask, Effect, Limits
from policy.rulespec import RuleError, RuleSpec, read_rule
from registry.risk import RiskLevel

REFUNDS = {
    "name": "small refunds go through",
    "tools": ["Payments.Refund"],
    "agents": ["support-bot"],
    "when": "input.amount <= 100.0",
    "effect": "allow",
    "limits": {"perMinute": 30, "perDay": 500, "atOnce": 4},
}
WRITES = {
    "name": "writes to the outside need a person",
    "capabilities": ["external.side_effect"],
    "riskAtLeast": "high",
    "effect": "ask",
    "ask": {"approvers": "payments-approvers", "quorum": 2, "decideWithin": "10m", "runWithin": "10m"},
}


def test_a_rule_is_read_field_by_field() -> None:
    assert read_rule(REFUNDS) == RuleSpec(
        name="small refunds go through",
        tools=("Payments.Refund",),
        agents=("support-bot",),
        when="input.amount <= 100.0",
        effect=Effect.ALLOW,
        limits=Limits(per_minute=30, per_day=500, at_once=4),
    )
    assert read_rule(WRITES) == RuleSpec(
        name="writes to the outside need a person",
        capabilities=("external.side_effect",),
        risk_at_least=RiskLevel.HIGH,
        effect=Effect.ASK,
        ask=Ask(approvers="payments-approvers", quorum=2, decide_within=600, run_within=600),
    )


@pytest.mark.parametrize("data", [REFUNDS, WRITES])
def test_a_rule_is_written_as_the_file_spells_it(data: dict[str, Any]) -> None:
    assert read_rule(data).as_json() == data


def test_a_rule_that_asks_and_says_no_more_has_the_usual_terms() -> None:
    rule = read_rule({"name": "ask", "effect": "ask"})
    assert rule.ask == Ask()
    assert rule.as_json()["ask"] == {"quorum": 1, "decideWithin": "24h", "runWithin": "1h"}
    assert read_rule(rule.as_json()) == rule


@pytest.mark.parametrize(
    ("change", "path", "reason"),
    [
        ({"name": None}, "r.name", "is required"),
        ({"name": " "}, "r.name", "empty"),
        ({"name": "x" * 121}, "r.name", "120"),
        ({"name": "two\nlines"}, "r.name", "one line"),
        ({"name": " spaced"}, "r.name", "spaces"),
        ({"name": "Default"}, "r.name", "without a rule"),
        ({"name": "permission"}, "r.name", "without a rule"),
        ({"effect": None}, "r.effect", "is required"),
        ({"effect": "permit"}, "r.effect", "allow, deny, ask"),
        ({"effekt": "allow"}, "r.effekt", "did you mean effect?"),
        ({"tools": "Payments.Refund"}, "r.tools", "list"),
        ({"tools": ["Payments"]}, "r.tools[0]", "pattern"),
        ({"tools": ["*", "*.Refund"]}, "r.tools[1]", "pattern"),
        ({"tools": ["Payments.Ref*"]}, "r.tools[0]", "pattern"),
        ({"tools": ["Payments.*@1.0.0"]}, "r.tools[0]", "pattern"),
        ({"tools": ["Payments.Refund@1"]}, "r.tools[0]", "pattern"),
        ({"tools": ["Payments.Refund@01.0.0"]}, "r.tools[0]", "pattern"),
        ({"tools": ["Payments.Refund", "payments.refund"]}, "r.tools", "twice"),
        ({"agents": ["not a name"]}, "r.agents[0]", "agent"),
        ({"agents": ["a", "a"]}, "r.agents", "twice"),
        ({"agents": [1]}, "r.agents[0]", "text"),
        ({"groups": ["x" * 151]}, "r.groups[0]", "150"),
        ({"capabilities": ["Write"]}, "r.capabilities[0]", "capability"),
        ({"riskAtLeast": "huge"}, "r.riskAtLeast", "low, medium, high, critical"),
        ({"when": True}, "r.when", "leaves it out"),
        ({"when": 1}, "r.when", "text"),
        ({"when": "x" * 4001}, "r.when", "4000"),
        ({"ask": {"quorum": 1}}, "r.ask", "effect ask only"),
        ({"effect": "ask", "ask": {"quorum": 0}}, "r.ask.quorum", "from 1"),
        ({"effect": "ask", "ask": {"quorum": True}}, "r.ask.quorum", "whole number"),
        ({"effect": "ask", "ask": {"decideWithin": "soon"}}, "r.ask.decideWithin", "duration"),
        ({"effect": "ask", "ask": {"decideWithin": "500ms"}}, "r.ask.decideWithin", "whole seconds"),
        ({"effect": "ask", "ask": {"runWithin": "721h"}}, "r.ask.runWithin", "720h"),
        ({"effect": "ask", "ask": {"runWithin": 600}}, "r.ask.runWithin", "text"),
        ({"effect": "ask", "ask": {"whom": "x"}}, "r.ask.whom", "not a known field"),
        ({"effect": "deny", "limits": {"perDay": 1}}, "r.limits", "deny"),
        ({"limits": {}}, "r.limits", "at least one"),
        ({"limits": {"perDay": 0}}, "r.limits.perDay", "from 1"),
        ({"limits": {"perHour": 1}}, "r.limits.perHour", "not a known field"),
    ],
)
def test_what_is_no_rule_is_refused_where_it_is_wrong(change: dict[str, Any], path: str, reason: str) -> None:
    with pytest.raises(RuleError) as caught:
        read_rule({"name": "rule", "effect": "allow", **change}, "r")
    assert caught.value.path == path
    assert reason in caught.value.reason


@pytest.mark.parametrize("data", [None, [], "allow", 1])
def test_only_a_mapping_is_a_rule(data: Any) -> None:
    with pytest.raises(RuleError, match="mapping"):
        read_rule(data, "r")


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (
            REFUNDS,
            "Agent support-bot may call Payments.Refund when input.amount <= 100.0, "
            "at most 30 times a minute, 500 times a day and 4 at once.",
        ),
        (
            WRITES,
            "Any agent may call any tool with high or critical risk that has external.side_effect "
            "once two people of the group payments-approvers agree within 10m.",
        ),
        (
            {"effect": "deny", "tools": ["Mail.*", "Payments.Payout"], "agents": ["a", "b"], "groups": ["interns"]},
            "Agents a and b and the group interns may not call any tool of Mail or Payments.Payout.",
        ),
        (
            {"effect": "ask", "when": "input.n > 1", "limits": {"perDay": 1}},
            "Any agent may call any tool when input.n > 1, once one person who may approve agrees within 24h, "
            "at most once a day.",
        ),
        ({"effect": "allow", "tools": ["*", "Mail.Send"]}, "Any agent may call any tool."),
    ],
)
def test_a_rule_says_itself_in_plain_english(data: dict[str, Any], said: str) -> None:
    assert read_rule({"name": "rule", **data}).sentence == said
