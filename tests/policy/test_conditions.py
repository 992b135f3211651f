"""A condition holds, does not hold, or says in words why it cannot be judged; it never says a value."""

import threading
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest

from policy import conditions
from policy.agents import NewAgent
from policy.cel import engine
from policy.conditions import ConditionFailed, compiled, problems
from registry.risk import RiskLevel
from tests.policy.conditionkit import INPUT, MONDAY, asked, holds, tool_spec


def failure(text: str, arguments: dict[str, Any] | None = None) -> str:
    with pytest.raises(ConditionFailed) as failed:
        holds(text, arguments)
    return str(failed.value)


@pytest.mark.parametrize(
    "text",
    [
        "input.amount <= 100.0",
        "input.amount <= 100",
        "input.amount == 50.0",
        "input.amount in [50.0, 60]",
        'agent.name == "support-bot"',
        '"support" in agent.groups',
        'agent.groups.exists(group, group.startsWith("ni"))',
        'tool.id == "Payments.Refund@1.2.0" && tool.toolkit == "Payments" && tool.name == "Refund"',
        'tool.version == "1.2.0" && tool.idempotency == "keyed" && tool.runtime == "http"',
        'tool.risk == "high" && tool.risk_level == 3',
        '"money" in tool.capabilities',
        'context.user_id == "ada"',
        'now == timestamp("2026-01-05T10:30:15Z")',
        "now.getHours() == 10 && now.getDayOfWeek() == 1",
        'input.to.city == "Köln"',
        "input.reference == null",
        "input.lines.all(line, line.pieces >= 1)",
        '!has(input.note) || input.note == "x"',
        'input["amount"] == 50',
        '"amount" in input && !("note" in input)',
        'input.lines.filter(line, line.pieces > 1).map(line, line.sku) == ["A-1"]',
    ],
)
def test_a_condition_reads_everything_it_was_promised(text: str) -> None:
    assert holds(text)
    assert not holds(f"!({text})")


@pytest.mark.parametrize(("amount", "answer"), [(100, True), (100.0, True), (100.01, False), (101, False)])
def test_a_number_is_compared_by_its_value_however_it_was_written(amount: float, answer: bool) -> None:
    for text in ("input.amount <= 100", "input.amount <= 100.0", "100 >= input.amount"):
        assert holds(text, {"amount": amount}) is answer


@pytest.mark.parametrize("level", list(RiskLevel))
def test_the_risk_of_a_tool_has_a_word_and_a_number(level: RiskLevel) -> None:
    condition = compiled(f'tool.risk == "{level.word}" && tool.risk_level == {level.value}')
    assert condition.holds(asked(tool=tool_spec(risk=level)), groups=(), now=MONDAY)
    other = next(each for each in RiskLevel if each != level)
    assert not condition.holds(asked(tool=tool_spec(risk=other)), groups=(), now=MONDAY)


def test_the_hours_are_those_of_utc_wherever_the_clock_stands() -> None:
    there = MONDAY.astimezone(timezone(timedelta(hours=9)))
    assert compiled("now.getHours() == 10").holds(asked(), groups=(), now=there)


@pytest.mark.django_db
def test_the_owner_is_looked_up_only_when_a_condition_asks(
    made: NewAgent, person: Any, django_assert_num_queries: Any
) -> None:
    question = asked(agent_id=made.agent.pk)
    with django_assert_num_queries(0):
        assert compiled('agent.name == "support-bot"').holds(question, groups=(), now=MONDAY)
    assert compiled('agent.owner == ""').holds(question, groups=(), now=MONDAY)
    made.agent.owner = person
    made.agent.save()
    with django_assert_num_queries(1):
        assert compiled('agent.owner == "petra"').holds(question, groups=(), now=MONDAY)


def test_a_look_up_that_fails_is_a_failure_and_is_logged(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def lost(spec: Any) -> Any:
        raise OSError("the database is gone")

    monkeypatch.setattr(conditions, "_tool", lost)
    assert failure('tool.risk == "high"') == "what it reads could not be looked up"
    assert "the database is gone" in caplog.text


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('input.note == "x"', "`input.note` is not given"),
        ('input.to.zip == "x"', "`input.to.zip` is not given"),
        ("has(input.from.city)", "`input.from` is not given"),
        ('input.labels["cost centre"] == "x"', '`input.labels["cost centre"]` is not given'),
        ("input.lines.all(line, line.price > 1)", "a field `price` that it reads is not given"),
        ("input.currency < 5", "`input.currency` is a text and `5` is a whole number"),
        ("input.amount + 0.5 > 1.0", "`input.amount` is a whole number and `0.5` is a decimal number"),
        ("input.currency && true", "`input.currency` is a text"),
        ("input.reference.startsWith('x')", "`startsWith()` takes a text; `input.reference` is null"),
        ("input.amount.cents > 1", "`input.amount` is a whole number and has no field `cents`"),
        ("input.amount", "it gives a whole number, not true or false"),
        ("input.currency", "it gives a text, not true or false"),
        ("input.to", "it gives an object, not true or false"),
        ("now", "it gives a moment, not true or false"),
        ("10 / (input.count - 3) > 1", "it divides by zero"),
        ("input.count * 9223372036854775807 > 1", "a number or a moment grows out of range"),
        ('input.tags[4] == "gift"', "a list is shorter than the condition expects"),
        ("int(input.currency) > 1", "a text cannot be read as the number, moment or duration it should be"),
        ("now > timestamp(input.currency)", "a text cannot be read as the number, moment or duration it should be"),
        ("colour == 1", "There is no variable `colour`"),
    ],
)
def test_what_cannot_be_judged_says_why(text: str, words: str) -> None:
    assert words in failure(text)


def test_a_failure_never_repeats_a_value_of_the_input() -> None:
    secret = "hunter2-9f31"
    arguments = {"key": secret, "map": {secret: 1}, "number": 4_815_162_342, "list": [secret], "deep": {"er": secret}}
    for text in (
        "input.map[input.deep.key] == 1",
        "input.deep[input.key] == 1",
        "input.number * 9223372036854775807 > 0",
        "input.list[input.number] == 1",
        "int(input.key) > 1",
        "timestamp(input.key) > now",
        "duration(input.key) > duration('1s')",
        "input.key > 5",
        "input.key",
        "input.map",
        "input.list.all(item, item > input.number)",
        "input.map.exists(key, key.zip > 1)",
        "input.map.all(key, input.deep[key] > 1)",
        "{input.key: 1}.x == 1",
    ):
        told = failure(text, arguments)
        assert secret not in told
        assert "4815162342" not in told


def test_an_error_that_does_not_matter_does_not_fail() -> None:
    assert holds('input.note == "x" || input.amount == 50')
    assert not holds('input.note == "x" && input.amount == 51')


@pytest.mark.parametrize("value", [2**2000, "\ud800", {1, 2}, object()])
def test_a_value_that_the_engine_cannot_take_fails_in_words(value: Any) -> None:
    assert failure("input.odd == 1", {"odd": value})


def test_a_panic_of_the_engine_is_a_failure_and_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    class RustPanic(BaseException):
        pass

    class Program:
        def execute(self, variables: Any) -> Any:
            raise RustPanic("thread panicked at 42")

    good = compiled("input.amount < 2")
    condition = conditions.Condition(
        text=good.text,
        _program=Program(),  # type: ignore[arg-type]
        _tree=good._tree,
        _reads=good._reads,
        _largest_input=None,
    )
    with pytest.raises(ConditionFailed, match="the engine gave up"):
        condition.holds(asked(), groups=(), now=MONDAY)
    assert "input.amount < 2" in caplog.text


def test_an_interruption_is_not_swallowed(monkeypatch: pytest.MonkeyPatch) -> None:
    class Program:
        def execute(self, variables: Any) -> Any:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        engine.run(Program(), {})  # type: ignore[arg-type]


def test_the_same_text_is_compiled_once() -> None:
    assert compiled("input.amount < 12") is compiled("input.amount < 12")
    assert conditions.compiled.cache_info().maxsize is not None


def test_a_condition_cannot_be_changed() -> None:
    with pytest.raises(AttributeError):
        compiled("true").text = "false"  # type: ignore[misc]


@pytest.mark.parametrize("text", ["", "input.", "1 +", "(" * 1000, "a" * 2001, "input.amount = 1", "5u == 5u"])
def test_text_that_does_not_parse_is_a_value_error_with_its_place(text: str) -> None:
    with pytest.raises(ValueError, match=r"^Line 1, column \d+: "):
        compiled(text)


def test_many_threads_judge_with_one_condition() -> None:
    condition = compiled("input.lines.exists(line, line.pieces == input.amount)")
    wrong: list[int] = []

    def judge(number: int) -> None:
        for turn in range(300):
            pieces = [{"pieces": turn}, {"pieces": number}]
            is_right = condition.holds(asked({"amount": number, "lines": pieces}), groups=(), now=MONDAY)
            if not is_right:
                wrong.append(number)

    threads = [threading.Thread(target=judge, args=(1000 + number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []


def test_only_what_a_condition_reads_is_handed_to_the_engine() -> None:
    class Poison:
        pass

    arguments = INPUT | {"huge": Poison()}
    assert holds("input.amount == 50", arguments)
    assert failure("size(input) > 1", arguments)


def test_a_saved_condition_is_also_judged() -> None:
    assert problems("input.amount <= 100.0") == []
    assert compiled("input.amount <= 100.0").holds(asked(), groups=(), now=datetime.now(UTC))
