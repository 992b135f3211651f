"""No condition, and no input, keeps a worker busy: what would take too long is refused before it starts."""

import random
import time
from typing import Any

import pytest

from policy.cel.cost import LEAST, is_larger, largest_input
from policy.cel.parsing import parsed
from policy.conditions import ConditionFailed, problems
from tests.policy.conditionkit import holds

ONES = "[" + ",".join(["1"] * 60) + "]"
BODY = {"numbers": list(range(20_000)), "rows": [{"id": number, "name": "x" * 40} for number in range(5_000)]}


def limit(text: str) -> int | None:
    return largest_input(parsed(text))


@pytest.mark.parametrize(
    "text",
    [
        "input.amount <= 100.0",
        "input.numbers.exists(number, number == -1)",
        'input.rows.exists(row, row.id == -1 && row.name.contains("y"))',
        "input.rows.exists(row, row.tags.exists(tag, tag == 1))",
        '["a", "b"].exists(start, input.path.startsWith(start))',
        '"x" in input.numbers',
        'input.path.matches("^/home/")',
        r'agent.name.matches(r"^\w{3,5}$")',
    ],
)
def test_what_goes_through_the_input_once_has_no_limit(text: str) -> None:
    assert limit(text) is None


@pytest.mark.parametrize(
    ("text", "least", "most"),
    [
        ("input.numbers.filter(number, number > 5).size() > 0", 1_000, 10_000),
        ("input.rows.map(row, row.id).exists(id, id == 5)", 1_000, 10_000),
        ("input.numbers.exists(one, input.numbers.exists(other, one == other))", 500, 5_000),
        ('input.rows.all(row, row.name.matches("^[a-z]+$"))', 1_000, 10_000),
        ("input.numbers.all(number, number in input.allowed)", 500, 5_000),
        ('input.path.matches("^[^@]+@[^@]+$")', 1_000, 20_000),
        ('input.path.matches("[ab]*a[ab]{1000}c")', 50, 1_000),
        ("input.numbers.map(one, input.numbers) == []", 50, 500),
        ("input.numbers.map(one, input.numbers.map(other, input.numbers)) == []", 20, 100),
    ],
)
def test_the_steeper_the_cost_the_smaller_the_input(text: str, least: int, most: int) -> None:
    found = limit(text)
    assert found is not None
    assert least < found < most


@pytest.mark.parametrize(
    "text",
    [
        f"{ONES}.map(x, {ONES}.map(y, {ONES})).size() > 0",
        f"{ONES}.map(x, {ONES}.map(y, 1)).map(z, z).map(z, z).map(z, z).size() > 0",
        "[[1]]" + ".map(x, [x, x, x, x, x, x])" * 8 + ".size() > 0",
        "['a']" + ".map(x, x + x + x + x + x + x)" * 10 + ".size() > 0",
        "input.numbers" + ".map(x, [x, x, x, x, x, x])" * 8 + ".size() > 0",
    ],
)
def test_a_condition_that_is_slow_whatever_it_is_asked_may_not_be_saved(text: str) -> None:
    started = time.process_time()
    assert "takes too long to judge" in " ".join(problems(text))
    with pytest.raises(ConditionFailed, match="too large"):
        holds(text, {"numbers": list(range(100))})
    assert time.process_time() - started < 1


@pytest.mark.parametrize(
    "text",
    [
        "input.numbers.filter(number, number > 5).size() > 0",
        "input.numbers.exists(one, input.numbers.exists(other, one == -1))",
        "input.rows.map(row, row.name).exists(name, name == '')",
        "input.rows.all(row, row.name.matches('^x+$'))",
        "input.numbers.all(number, input.numbers[0] == 0)",
        "input.rows.all(row, input.rows.exists(other, other.id == row.id))",
    ],
)
def test_a_large_input_fails_at_once_where_judging_it_would_take_long(text: str) -> None:
    started = time.process_time()
    with pytest.raises(ConditionFailed, match="the input is too large for this condition to be judged in time"):
        holds(text, BODY)
    assert time.process_time() - started < 1


@pytest.mark.parametrize(
    "text",
    [
        "input.rows.filter(row, row.id >= 0).size() > 0",
        "input.rows.map(row, row.name).exists(name, name == 'x')",
        "input.rows.all(row, row.name.matches('^[a-z]+$'))",
        "input.rows.all(row, input.rows.exists(other, other.id == row.id))",
        "input.rows.map(row, input.rows).size() > 0",
    ],
)
def test_an_input_just_within_the_limit_is_judged_in_time(text: str) -> None:
    most = limit(text)
    assert most is not None
    rows: list[dict[str, Any]] = [{"id": number, "name": "x"} for number in range(most // 5 - 2)]
    assert not is_larger({"rows": rows}, most)
    started = time.process_time()
    holds(text, {"rows": rows})
    assert time.process_time() - started < 3  # a second on a machine that has nothing else to do


def test_a_text_made_to_be_slow_for_a_pattern_is_refused_or_judged_in_time() -> None:
    text = 'input.path.matches("[ab]*a[ab]{1000}c")'
    most = limit(text)
    assert most is not None
    chance = random.Random(5)
    path = "".join(chance.choice("ab") for _ in range((most - 4) * 64))
    started = time.process_time()
    assert not holds(text, {"path": path})
    assert time.process_time() - started < 3
    with pytest.raises(ConditionFailed, match="too large"):
        holds(text, {"path": path * 2})


def test_a_pattern_that_is_not_written_out_is_never_run() -> None:
    with pytest.raises(ConditionFailed, match="too large"):
        holds("agent.name.matches(input.pattern)", {"pattern": "(a{1000}){1000}"})


def test_linear_conditions_are_judged_in_time_for_the_largest_input() -> None:
    started = time.process_time()
    assert not holds("input.numbers.exists(number, number == -1)", {"numbers": list(range(99_000))})
    assert time.process_time() - started < 3


def test_size_counts_values_keys_and_long_texts() -> None:
    assert not is_larger({"a": [1, 2], "b": "x"}, 7)
    assert is_larger({"a": [1, 2], "b": "x"}, 6)
    assert is_larger("x" * 6_400, 100)
    assert not is_larger("x" * 6_400, 101)
    assert LEAST > 0
