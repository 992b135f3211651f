"""One file is one policy: read strictly, with lines; what is written reads back equal."""

import json
from pathlib import Path

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from policy import policyfile
from policy.decision import Ask, Effect, Limits
from policy.policyfile import PolicyFileError
from policy.rulechecks import Problem
from policy.rulespec import RuleSpec, read_rule
from registry.risk import RiskLevel

FILE = """\
apiVersion: placet.dev/v1
kind: Policy
spec:
  rules:                           # in order; a matching deny wins, else the first match, else the default for the risk
    - name: small refunds go through
      tools: ["Payments.Refund"]   # Toolkit.Tool, Toolkit.*, *
      agents: ["support-bot"]      # absent: any; groups: […] likewise
      when: input.amount <= 100.0
      effect: allow                # allow | deny | ask
      limits: {perMinute: 30, perDay: 500, atOnce: 4}
    - name: writes to the outside need a person
      capabilities: [external.side_effect]
      riskAtLeast: high
      effect: ask
      ask: {approvers: payments-approvers, quorum: 2, decideWithin: 10m, runWithin: 10m}
"""
# The first text that is drawn on a machine has the whole of Unicode looked through.
patient = settings(deadline=None, max_examples=50, suppress_health_check=[HealthCheck.too_slow])
texts = st.text(st.characters(codec="utf-8", exclude_characters="\0"), min_size=1, max_size=40)
names = texts.map(str.strip).filter(lambda name: bool(name) and name.isprintable() and name.lower() not in {"error"})
asks = st.builds(
    Ask,
    approvers=st.one_of(st.just(""), texts.filter(str.strip)),
    quorum=st.integers(1, 20),
    decide_within=st.integers(1, 30 * 86_400),
    run_within=st.integers(1, 30 * 86_400),
)
limits = st.builds(Limits, per_minute=st.integers(1, 10**9), per_day=st.none(), at_once=st.none() | st.integers(1, 9))


def tuples(of: st.SearchStrategy[str]) -> st.SearchStrategy[tuple[str, ...]]:
    return st.lists(of, unique_by=str.lower, max_size=3).map(tuple)


@st.composite
def rules(draw: st.DrawFn) -> RuleSpec:
    effect = draw(st.sampled_from(Effect))
    return RuleSpec(
        name=draw(names.filter(lambda name: name.lower() not in ("permission", "default"))),
        agents=draw(tuples(st.from_regex(r"\A[A-Za-z0-9][A-Za-z0-9._-]{0,20}\Z"))),
        groups=draw(tuples(texts.filter(str.strip))),
        tools=draw(tuples(st.sampled_from(["*", "Mail.*", "Mail.Send", "mail.Read@1.2.0", "Yes.No", "Null.x"]))),
        capabilities=draw(tuples(st.sampled_from(["data.read", "data.write", "mail.send"]))),
        risk_at_least=draw(st.none() | st.sampled_from(RiskLevel)),
        when=draw(st.just("") | texts.map(str.strip)),
        effect=effect,
        ask=draw(asks) if effect is Effect.ASK else None,
        limits=draw(st.none() | limits) if effect is not Effect.DENY else None,
    )


@patient
@example([], "one\x85two\u2028three\rfour")
@given(st.lists(rules(), max_size=4, unique_by=lambda rule: rule.name), texts.map(str.strip))
def test_what_is_written_reads_back_equal(written: list[RuleSpec], note: str) -> None:
    file = policyfile.parse(policyfile.written(written, note=note))
    assert file.rules == written
    assert file.note == note


@patient
@given(rules())
def test_json_and_rows_of_one_rule_read_back_equal(rule: RuleSpec) -> None:
    assert read_rule(rule.as_json()) == rule
    assert policyfile.read(json.dumps(policyfile.document([rule]))) == [rule]


def test_the_file_of_the_manual_is_read() -> None:
    small, writes = policyfile.read(FILE)
    assert (small.name, small.effect, small.limits) == (
        "small refunds go through",
        Effect.ALLOW,
        Limits(per_minute=30, per_day=500, at_once=4),
    )
    assert (writes.risk_at_least, writes.ask) == (
        RiskLevel.HIGH,
        Ask(approvers="payments-approvers", quorum=2, decide_within=600, run_within=600),
    )


def test_a_policy_may_have_no_rules_but_says_so() -> None:
    assert policyfile.read("apiVersion: placet.dev/v1\nkind: Policy\nspec: {rules: []}") == []


@pytest.mark.parametrize(
    ("old", "new", "line", "told"),
    [
        ("placet.dev/v1", "placet.dev/v2", 1, "apiVersion: must be one of placet.dev/v1"),
        ("kind: Policy", "kind: Toolkit", 2, "kind: must be one of Policy"),
        ("kind: Policy", "kind: Policy\nmetadata: {name: x}", 3, "metadata.name: is not a known field"),
        ("kind: Policy", "kind: Policy\nowner: x", 3, "owner: is not a known field"),
        ("  rules:  ", "  rulez:  ", 4, "spec.rulez: is not a known field; did you mean rules?"),
        ("effect: allow ", "effect: permit ", 9, "spec.rules[0].effect: must be one of allow, deny, ask"),
        ("perMinute", "perminute", 10, "spec.rules[0].limits.perminute: is not a known field"),
        ("decideWithin: 10m", "decideWithin: soon", 15, "spec.rules[1].ask.decideWithin: is not a duration"),
        (
            "writes to the outside need a person",
            "small refunds go through",
            11,
            "spec.rules[1].name: is the name of spec.rules[0] already",
        ),
        ("capabilities: [", "capabilities: &x [", 12, "anchor"),
    ],
)
def test_what_is_no_policy_is_refused_with_its_path_and_line(old: str, new: str, line: int, told: str) -> None:
    assert old in FILE
    with pytest.raises(PolicyFileError) as caught:
        policyfile.read(FILE.replace(old, new, 1))
    assert caught.value.line == line
    assert told in str(caught.value)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("", "empty"),
        ("- a", "mapping"),
        ("{", "not JSON"),
        ("a: [", "not YAML"),
        ("apiVersion: placet.dev/v1\nkind: Policy", "spec: is required"),
        ("apiVersion: placet.dev/v1\nkind: Policy\nspec: {}", "spec.rules: is required"),
        ("\ud800", "not UTF-8"),
    ],
)
def test_what_is_not_even_a_document_is_refused(text: str, told: str) -> None:
    with pytest.raises(PolicyFileError, match=told):
        policyfile.read(text)


def test_a_policy_has_at_most_two_thousand_rules() -> None:
    many = [RuleSpec(name=f"rule {place}", effect=Effect.ALLOW) for place in range(2_001)]
    assert len(policyfile.read(policyfile.written(many[:-1]))) == 2_000
    with pytest.raises(PolicyFileError, match="at most 2000"):
        policyfile.read(policyfile.written(many))


def test_a_problem_found_later_is_told_with_its_line(tmp_path: Path) -> None:
    path = tmp_path / "policy.yaml"
    path.write_text(FILE)
    file = policyfile.read_file(path)
    error = file.located(Problem(place=0, name="small refunds go through", field="when", reason="is never true"))
    assert (error.path, error.line, error.reason) == ("spec.rules[0].when", 8, "is never true")


def test_a_file_that_is_not_there_is_said_so(tmp_path: Path) -> None:
    with pytest.raises(PolicyFileError, match="No such file"):
        policyfile.read_file(tmp_path / "nothing.yaml")
