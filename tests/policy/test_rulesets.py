"""Permission first, then the rules: a matching deny wins, else the first match, else the default for the risk."""

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from policy import rulesets
from policy.checks.permission import granted
from policy.decision import Ask, Decision, Effect, Limits
from policy.question import Question
from policy.rulesets import RuleSet
from policy.rulespec import RuleSpec
from registry.risk import RiskLevel
from tests.policy.rules import agent, question, rule, spec

GROUPS: dict[str, frozenset[str]] = {}


@pytest.fixture(autouse=True)
def everyone_may_call(monkeypatch: pytest.MonkeyPatch) -> Iterator[dict[str, frozenset[str]]]:
    """Permissions and groups have tests of their own; here everyone may call, and is in the groups that we say."""
    monkeypatch.setattr(rulesets, "permission", lambda asked: granted(asked.tool.toolkit))
    monkeypatch.setattr(rulesets, "groups_of", lambda caller: GROUPS.get(caller.name, frozenset()))
    yield GROUPS
    GROUPS.clear()


def judged(rules: Sequence[RuleSpec], asked: Question) -> Decision:
    return RuleSet(7, list(rules)).judge(asked)


def spoke(decision: Decision) -> list[tuple[str, str]]:
    return [(finding.check, finding.effect.value) for finding in decision.findings]


@pytest.mark.parametrize(
    ("risk", "effect", "ask"),
    [
        (RiskLevel.LOW, Effect.ALLOW, None),
        (RiskLevel.MEDIUM, Effect.ALLOW, None),
        (RiskLevel.HIGH, Effect.ASK, Ask(quorum=1)),
        (RiskLevel.CRITICAL, Effect.ASK, Ask(quorum=2)),
    ],
)
def test_where_no_rule_speaks_the_risk_decides(risk: RiskLevel, effect: Effect, ask: Ask | None) -> None:
    decision = judged([rule("other", "deny", tools=["Mail.*"])], question(spec(risk=risk)))
    assert (decision.effect, decision.rule, decision.ask, decision.revision) == (effect, "default", ask, 7)
    assert spoke(decision) == [("permission", "allow"), ("default", effect.value)]


def test_the_first_matching_rule_decides_and_the_default_is_not_heard() -> None:
    rules = [
        rule("mail", "ask", tools=["Mail.*"]),
        rule("asks", "ask", ask={"approvers": "payers", "quorum": 2}, limits={"perDay": 5}),
        rule("allows"),
    ]
    decision = judged(rules, question(spec()))
    assert (decision.effect, decision.rule) == (Effect.ASK, "asks")
    assert (decision.ask, decision.limits) == (Ask(approvers="payers", quorum=2), Limits(per_day=5))
    assert spoke(decision) == [("permission", "allow"), ("asks", "ask")]


def test_a_deny_wins_wherever_it_stands_and_the_first_one_is_named() -> None:
    rules = [rule("allows"), rule("asks", "ask"), rule("first no", "deny"), rule("second no", "deny")]
    decision = judged(rules, question(spec()))
    assert (decision.effect, decision.rule, decision.ask, decision.limits) == (Effect.DENY, "first no", None, None)
    assert spoke(decision) == [
        ("permission", "allow"),
        ("allows", "allow"),
        ("first no", "deny"),
        ("second no", "deny"),
    ]


@pytest.mark.parametrize("effect", ["allow", "ask", "deny"])
def test_a_condition_that_fails_denies_and_names_its_rule(effect: str) -> None:
    rules = [rule("broken", effect, when="input.amount > 5"), rule("allows")]
    decision = judged(rules, question(spec()))
    assert (decision.effect, decision.rule) == (Effect.DENY, "broken")
    assert decision.reason.startswith("Rule 'broken' could not be judged")
    assert "amount" in decision.help
    assert ("broken", "deny") in spoke(decision)


def test_a_deny_that_matches_is_named_before_a_rule_that_failed() -> None:
    rules = [rule("broken", when="input.amount > 5"), rule("no", "deny")]
    assert judged(rules, question(spec())).rule == "no"


def test_behind_the_first_match_only_a_deny_is_asked() -> None:
    rules = [rule("allows"), rule("broken", when="input.amount > 5")]
    assert judged(rules, question(spec())).rule == "allows"
    rules = [rule("allows"), rule("broken", "deny", when="input.amount > 5")]
    assert (judged(rules, question(spec())).effect, judged(rules, question(spec())).rule) == (Effect.DENY, "broken")


@pytest.mark.parametrize("first", [rule("first", "deny"), rule("first", when="input.amount > 5"), rule("first")])
def test_a_rule_that_can_no_longer_matter_is_not_heard(first: RuleSpec) -> None:
    decision = judged([first, rule("second", "ask"), rule("third")], question(spec()))
    assert [finding.check for finding in decision.findings] == ["permission", "first"]


def test_an_error_inside_a_condition_denies_and_is_told_to_the_log_only(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def broken(*args: Any, **kwargs: Any) -> bool:
        raise RuntimeError("internal detail")

    monkeypatch.setattr("policy.conditions.Condition.holds", broken)
    decision = judged([rule("rule", when="input.amount > 5")], question(spec(), amount=7))
    assert (decision.effect, decision.rule) == (Effect.DENY, "rule")
    assert "internal detail" not in str(decision.as_json())
    assert "internal detail" in caplog.text


@pytest.mark.parametrize(
    ("pattern", "matches"),
    [
        ("*", True),
        ("Payments.*", True),
        ("payments.*", True),
        ("PAYMENTS.REFUND", True),
        ("Payments.Refund@1.0.0", True),
        ("payments.refund@1.0.0", True),
        ("Payments.Refund@1.0.1", False),
        ("Payments.Ref", False),
        ("Payment.*", False),
        ("Refund.*", False),
    ],
)
def test_patterns_mean_tools_without_regard_to_case(pattern: str, matches: bool) -> None:
    decision = judged([rule("rule", "deny", tools=["Mail.Send", pattern])], question(spec()))
    assert (decision.rule == "rule") is matches


@pytest.mark.parametrize(
    ("who", "matches"),
    [
        ({}, True),
        ({"agents": ["demo"]}, True),
        ({"agents": ["Demo"]}, False),
        ({"agents": ["other"]}, False),
        ({"groups": ["bots"]}, True),
        ({"groups": ["people"]}, False),
        ({"agents": ["other"], "groups": ["bots"]}, True),
        ({"agents": ["demo"], "groups": ["people"]}, True),
        ({"agents": ["other"], "groups": ["people"]}, False),
    ],
)
def test_a_rule_is_for_its_agents_and_for_its_groups(who: dict[str, Any], matches: bool) -> None:
    GROUPS["demo"] = frozenset({"bots"})
    assert (judged([rule("rule", "deny", **who)], question(spec())).rule == "rule") is matches


def test_one_of_the_capabilities_is_enough_and_the_risk_is_a_least() -> None:
    writes = rule("writes", "deny", capabilities=["data.write", "mail.send"])
    assert judged([writes], question(spec("A.B", "1.0.0", RiskLevel.LOW, "data.read", "mail.send"))).rule == "writes"
    assert judged([writes], question(spec("A.B", "1.0.0", RiskLevel.LOW, "data.read"))).rule == "default"
    risky = rule("risky", "deny", riskAtLeast="high")
    assert [judged([risky], question(spec(risk=risk))).rule for risk in RiskLevel] == [
        "default",
        "default",
        "risky",
        "risky",
    ]


def test_an_answer_that_hangs_on_the_arguments_is_given_anew_each_time() -> None:
    rules, tool = RuleSet(1, [rule("small", "allow", when="input.amount <= 100"), rule("large", "deny")]), spec()
    assert rules.judge(question(tool, amount=5)).rule == "large"
    rules = RuleSet(1, [rule("large", "deny", when="input.amount > 100"), rule("small")])
    assert [rules.judge(question(tool, amount=amount)).rule for amount in (5, 500, 5)] == ["small", "large", "small"]


def test_the_moment_that_conditions_see_can_be_given() -> None:
    rules = RuleSet(1, [rule("past", "deny", when="now < timestamp('2020-01-01T00:00:00Z')")])
    assert rules.judge(question(spec())).rule == "default"
    assert rules.judge(question(spec()), now=datetime(2019, 5, 1, tzinfo=UTC)).rule == "past"


def test_two_agents_and_two_tools_do_not_get_each_others_answers() -> None:
    rules = RuleSet(1, [rule("rule", "deny", agents=["demo"], tools=["Payments.*"])])
    payments, mail = spec(), spec("Mail.Send")
    for _ in range(2):
        assert rules.judge(question(payments, agent("demo"))).rule == "rule"
        assert rules.judge(question(payments, agent("other", 2))).rule == "default"
        assert rules.judge(question(mail, agent("demo"))).rule == "default"


def test_an_agent_that_joins_a_group_gets_another_answer() -> None:
    rules, tool = RuleSet(1, [rule("rule", "deny", groups=["bots"])]), spec()
    assert rules.judge(question(tool)).rule == "default"
    GROUPS["demo"] = frozenset({"bots"})
    assert rules.judge(question(tool)).rule == "rule"


def test_a_reason_names_the_deciding_rule_and_no_other_agent() -> None:
    rules = [
        rule("secret project", "deny", agents=["hidden-bot"]),
        rule("no refunds", "deny", agents=["demo", "hidden-bot"], groups=["hidden-group"], when="input.amount > 5"),
    ]
    told = judged(rules, question(spec(), amount=7)).as_json()
    assert told["reason"] == "Rule 'no refunds' forbids agent demo to call Payments.Refund@1.0.0"
    assert "hidden" not in str(told)
    assert "secret" not in str(told)


def test_help_says_the_smallest_thing_that_would_help() -> None:
    denied = judged([rule("no refunds", "deny", when="input.amount > 5")], question(spec(), amount=7))
    assert denied.help == (
        "The rule looks at amount; another value may pass. Ask a policy owner for an exception from rule 'no refunds'"
    )
    asked = judged([rule("ask", "ask", ask={"approvers": "payers", "quorum": 2})], question(spec()))
    assert asked.reason.endswith("once two people of the group payers agree")
    assert "Wait" in asked.help


@pytest.mark.parametrize(
    ("rules", "is_barred"),
    [
        ([], False),
        ([rule("no", "deny")], True),
        ([rule("yes"), rule("no", "deny")], True),
        ([rule("no", "deny", when="input.amount > 5")], False),
        ([rule("no", "deny", agents=["other"])], False),
        ([rule("ask", "ask")], False),
    ],
)
def test_only_a_deny_without_a_condition_bars_a_tool(rules: list[RuleSpec], is_barred: bool) -> None:
    assert RuleSet(1, rules).is_barred(agent(), spec()) is is_barred


def test_the_rules_that_hang_on_arguments_can_be_asked_for() -> None:
    rules = RuleSet(1, [rule("a", when="input.n > 2"), rule("b"), rule("c", "deny", when="input.n > 3"), rule("d")])
    assert [each.name for each in rules.conditional(question(spec(), n=1))] == ["a", "c"]


# A second implementation, slow and plain, that the quick one must agree with.

CONDITIONS = {"input.n > 2": lambda n: n > 2, "input.n < 9": lambda n: n < 9}
TOOLS = ("Payments.Refund", "Payments.Payout", "Mail.Send")
PATTERNS = ("*", "Payments.*", "payments.refund", "PAYMENTS.Payout@1.0.0", "Mail.Send@2.0.0", "mail.*")


def subset(of: Sequence[str]) -> st.SearchStrategy[list[str]]:
    return st.lists(st.sampled_from(of), unique=True, max_size=2)


@st.composite
def rule_lists(draw: st.DrawFn) -> list[RuleSpec]:
    made = []
    for place in range(draw(st.integers(0, 6))):
        fields: dict[str, Any] = {
            "tools": draw(subset(PATTERNS)),
            "agents": draw(subset(("demo", "other"))),
            "groups": draw(subset(("bots", "people"))),
            "capabilities": draw(subset(("data.read", "data.write"))),
            "riskAtLeast": draw(st.none() | st.sampled_from(["low", "medium", "high", "critical"])),
            "when": draw(st.none() | st.sampled_from(list(CONDITIONS))),
        }
        made.append(rule(f"rule {place}", draw(st.sampled_from(["allow", "ask", "deny"])), **fields))
    return made


def means(pattern: str, tool: Any) -> bool:
    pattern, name = pattern.lower(), f"{tool.toolkit}.{tool.name}".lower()
    if pattern == "*":
        return True
    if pattern.endswith(".*"):
        return name.startswith(pattern.removesuffix("*"))
    return pattern in (name, f"{name}@{tool.version}")


def says(each: RuleSpec, asked: Question, groups: frozenset[str]) -> str:
    tool = asked.tool
    is_about = (
        ((not each.agents and not each.groups) or asked.caller.name in each.agents or bool(groups & set(each.groups)))
        and (not each.tools or any(means(pattern, tool) for pattern in each.tools))
        and (not each.capabilities or bool(set(each.capabilities) & set(tool.capabilities)))
        and (each.risk_at_least is None or tool.risk >= each.risk_at_least)
    )
    if not is_about:
        return "no"
    if not each.when:
        return "yes"
    if "n" not in asked.arguments:
        return "failed"
    return "yes" if CONDITIONS[each.when](asked.arguments["n"]) else "no"


def expected(rules: list[RuleSpec], asked: Question, groups: frozenset[str]) -> tuple[str, str]:
    answers = [(each, says(each, asked, groups)) for each in rules]
    for each, answer in answers:
        if each.effect is Effect.DENY and answer == "yes":
            return "deny", each.name
    for place, (each, answer) in enumerate(answers):
        was_decided = any(earlier == "yes" for _, earlier in answers[:place])
        if answer == "failed" and (each.effect is Effect.DENY or not was_decided):
            return "deny", each.name
    for each, answer in answers:
        if answer == "yes":
            return each.effect.value, each.name
    return ("ask" if asked.tool.risk >= RiskLevel.HIGH else "allow"), "default"


@settings(
    deadline=None, max_examples=300, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow]
)
@given(
    rules=rule_lists(),
    tool=st.sampled_from(TOOLS),
    version=st.sampled_from(["1.0.0", "2.0.0"]),
    risk=st.sampled_from(RiskLevel),
    capabilities=subset(("data.read", "data.write", "mail.send")),
    groups=subset(("bots", "people")),
    n=st.none() | st.integers(0, 12),
)
def test_the_quick_way_agrees_with_the_plain_one(
    rules: list[RuleSpec],
    tool: str,
    version: str,
    risk: RiskLevel,
    capabilities: list[str],
    groups: list[str],
    n: int | None,
) -> None:
    GROUPS["demo"] = frozenset(groups)
    made_of = spec(tool, version, risk, *capabilities)
    asked = question(made_of) if n is None else question(made_of, n=n)
    made = RuleSet(3, rules)
    decisions = [made.judge(asked), made.judge(asked)]
    assert decisions[0] == decisions[1]
    assert (decisions[0].effect.value, decisions[0].rule) == expected(rules, asked, GROUPS["demo"])
    assert decisions[0].rule in [finding.check for finding in decisions[0].findings]
    assert (decisions[0].ask is not None) is (decisions[0].effect is Effect.ASK)
    is_barred = any(
        each.effect is Effect.DENY and not each.when and says(each, asked, GROUPS["demo"]) == "yes" for each in rules
    )
    assert made.is_barred(asked.caller, asked.tool) is is_barred
