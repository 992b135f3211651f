"""A condition that can never be true is refused; one that might be is not."""

import itertools
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from policy.conditions import ConditionFailed, compiled, problems
from tests.policy.conditionkit import INPUT, MONDAY, SCHEMA, asked, found

NEVER = "The condition can never be true: "


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("false", "it is always false"),
        ("1 > 2", "it is always false"),
        ("input.urgent && false", "it is always false"),
        ("input.urgent ? false : 1 > 2", "it is always false"),
        ("[1, 2].exists(x, x == 3) && input.urgent", "it is always false"),
        ("input.amount > 5 && input.amount < 3", "`input.amount > 5` and `input.amount < 3` exclude each other"),
        ("5 < input.amount && 3 > input.amount", "exclude each other"),
        ("input.amount > 5 && input.amount <= 5", "exclude each other"),
        ('input["amount"] > 5 && input.amount < 3', "exclude each other"),
        ("input.amount > 5 && !(input.amount > 4)", "exclude each other"),
        ("input.amount == 1 && input.amount == 2", "exclude each other"),
        ("input.amount == 1 && input.amount != 1.0", "exclude each other"),
        ("input.amount in [1, 2] && input.amount > 2", "exclude each other"),
        ("input.amount > 1000", "but `input.amount` is a number from 0 to 1000"),
        ("input.amount < 0", "but `input.amount` is a number from 0 to 1000"),
        ("input.amount == -5", "but `input.amount` is a number from 0 to 1000"),
        ("input.count > 5 && input.count < 6", "exclude each other"),
        ("input.count == 5.5", "but `input.count` is a whole number"),
        ('input.currency == "GBP"', 'but `input.currency` is one of "EUR", "USD"'),
        ('input.currency in ["GBP", "CHF"]', 'but `input.currency` is one of "EUR", "USD"'),
        ('input.currency != "EUR" && input.currency != "USD"', "exclude each other"),
        ('!(input.currency in ["EUR", "USD"])', 'is one of "EUR", "USD"'),
        ('input.currency == "EUR" && input.currency == "USD"', "exclude each other"),
        ('tool.risk == "huge"', '`tool.risk` is one of "low", "medium", "high", "critical"'),
        ("tool.risk_level > 4", "`tool.risk_level` is one of 1, 2, 3, 4"),
        ('tool.runtime == "fax"', "`tool.runtime` is one of"),
        ("input.urgent && !input.urgent", "`input.urgent` cannot be both true and false"),
        ("input.urgent == true && input.urgent == false", "cannot be both true and false"),
        ('"ops" in agent.groups && !("ops" in agent.groups)', "cannot be both true and false"),
        ('"other" in input.tags', '`"other"` is never in `input.tags`'),
        ("now.getHours() >= 18 && now.getHours() < 8", "exclude each other"),
        ("now.getHours() == 24", "is a whole number from 0 to 23"),
        ("now.getDayOfWeek() in [7]", "is a whole number from 0 to 6"),
        (
            'now > timestamp("2026-06-01T00:00:00Z") && now < timestamp("2026-05-01T00:00:00Z")',
            "exclude each other",
        ),
        ('agent.name > "m" && agent.name < "c"', "exclude each other"),
        ('agent.name == "a" && agent.name == "b"', "exclude each other"),
        ("size(input.tags) < 0", "is a whole number from 0"),
        ("input.count < input.amount && input.count > input.amount", "exclude each other"),
        ("input.count < input.amount && input.amount <= input.count", "exclude each other"),
        ("input.count != input.count", "excludes itself"),
        ("!has(input.amount)", "`input.amount` is never absent"),
        ('!has(input.note) && input.note == "x"', "`input.note` cannot be absent and have a value"),
        ("has(input.note) && !has(input.note)", "cannot be both true and false"),
        ("input.lines.exists(line, line.pieces < 1)", "no item of `input.lines` can be meant"),
        ("input.amount > 5 && input.amount < 3 || false", "exclude each other"),
        ("(input.amount > 5 || input.amount < 3) && input.amount == 4", "exclude each other"),
        ("input.urgent ? input.amount > 1000 : input.amount < 0", "from 0 to 1000"),
    ],
)
def test_a_contradiction_is_refused_with_its_reason(text: str, words: str) -> None:
    told = found(text)
    assert told.startswith(NEVER)
    assert words in told


@pytest.mark.parametrize(
    "text",
    [
        "true",
        "1 < 2",
        "input.amount > 5 || input.amount < 3",
        "input.amount >= 1000",
        "input.amount > 5 && input.amount < 6",
        "input.count > 5 && input.count < 7",
        "input.count == 5.0",
        "input.amount > 1000 || input.urgent",
        'input.currency == "GBP" || input.currency == "EUR"',
        'input.currency != "EUR"',
        "input.urgent || !input.urgent",
        "now.getHours() >= 18 || now.getHours() < 8",
        "now.getHours() >= 18 && now.getMinutes() < 8",
        "input.lines.exists(line, line.pieces < 5) && input.lines.exists(line, line.pieces > 5)",
        "!input.lines.exists(line, line.pieces < 1)",
        '!("other" in input.tags)',
        "input.count <= input.amount && input.count >= input.amount",
        '!has(input.note) || input.note == "x"',
        'tool.risk in ["high", "huge"]',
        "(input.urgent ? 1 : 2) == 3 || input.urgent",
    ],
)
def test_what_may_be_true_is_not_refused(text: str) -> None:
    assert found(text) == ""


def test_a_condition_with_too_many_cases_has_the_benefit_of_the_doubt() -> None:
    many = " && ".join(f"(input.a{number} == 1 || input.b{number} == 1)" for number in range(12))
    assert problems(f"{many} && input.x > 5 && input.x < 3") == []


AMOUNTS = [0, 2.5, 3, 5, 7.0, 1000]
WORLDS: list[dict[str, Any]] = [
    INPUT | {"amount": amount, "count": count, "currency": currency, "urgent": urgent} | note
    for amount, count, currency, urgent, note in itertools.product(
        AMOUNTS, [0, 1, 3, 5], ["EUR", "USD"], [True, False], [{}, {"note": "x"}, {"note": "y"}]
    )
]
constants = st.sampled_from(["0", "1", "2.5", "3", "5", "5.0", "7", "1000", "1001", "-1"])
operators = st.sampled_from(["==", "!=", "<", "<=", ">", ">="])
numbers = st.sampled_from(["input.amount", "input.count", 'input["amount"]', "size(input.tags)", "tool.risk_level"])
atoms = st.one_of(
    st.builds("{} {} {}".format, numbers, operators, constants),
    st.builds("{} {} {}".format, constants, operators, numbers),
    st.builds("{} {} {}".format, numbers, operators, numbers),
    st.builds("{} in [{}, {}]".format, numbers, constants, constants),
    st.builds(
        'input.currency {} "{}"'.format,
        st.sampled_from(["==", "!=", "<", ">="]),
        st.sampled_from(["EUR", "USD", "GBP"]),
    ),
    st.builds(
        'input.currency in ["{}", "{}"]'.format, st.sampled_from(["EUR", "GBP"]), st.sampled_from(["USD", "CHF"])
    ),
    st.builds(
        'has(input.note) && input.note {} "{}"'.format, st.sampled_from(["==", "!="]), st.sampled_from(["x", "y"])
    ),
    st.builds(
        "input.lines.{}(line, line.pieces {} {})".format,
        st.sampled_from(["all", "exists", "exists_one"]),
        operators,
        constants,
    ),
    st.sampled_from(
        ["input.urgent", "has(input.note)", "true", "false", "input.urgent == false", '"gift" in input.tags']
    ),
)
conditions = st.recursive(
    atoms,
    lambda inner: st.one_of(
        st.builds("({}) && ({})".format, inner, inner),
        st.builds("({}) || ({})".format, inner, inner),
        st.builds("!({})".format, inner),
        st.builds("({}) ? ({}) : ({})".format, inner, inner, inner),
        st.builds("({}) == {}".format, inner, st.sampled_from(["true", "false"])),
    ),
    max_leaves=5,
)


@settings(deadline=None, max_examples=150, suppress_health_check=[HealthCheck.too_slow])
@given(conditions)
def test_what_is_called_impossible_is_never_true_and_what_is_accepted_can_be_judged(text: str) -> None:
    told = problems(text, input_schemas=[SCHEMA])
    if told and not told[0].startswith(NEVER):
        return
    condition = compiled(text)
    for world in WORLDS:
        try:
            is_true = condition.holds(asked(world), groups=(), now=MONDAY)
        except ConditionFailed:
            assert told, f"{text} was accepted and failed for {world}"
        else:
            assert not (told and is_true), f"{text} was called impossible and is true of {world}"
