"""A condition that names what is not there, or joins what does not go together, is refused when it is saved."""

from typing import Any

import pytest

from policy.conditions import problems
from tests.policy.conditionkit import SCHEMA, found


def object_of(*required: str, **properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "required": list(required), "additionalProperties": False}


@pytest.mark.parametrize(
    "text",
    [
        "true",
        "input.amount <= 100.0",
        "input.amount <= 100",
        "input.count + 1 > 2 * input.count",
        "double(input.amount) * 1.19 < 500.0",
        "input.urgent",
        'input.currency == "EUR" && input.amount < 50',
        'input.currency in ["EUR", "CHF"]',
        "input.reference == null || input.reference == 'x'",
        'input.to.city.startsWith("K")',
        'has(input.to.zip) && input.to.zip.matches("^[0-9]{5}$")',
        "!has(input.note) || input.note.size() < 200",
        'has(input.note) ? input.note.contains("refund") : true',
        '"note" in input && input.note != ""',
        'input.lines.all(line, line.pieces < 10 && line.sku != "")',
        "input.lines.exists(line, has(line.part_of) && line.part_of.pieces > 1)",
        "input.lines.map(line, line.pieces).exists(pieces, pieces > 5)",
        "input.lines.filter(line, line.pieces > 5).size() == 0",
        "size(input.lines) < 5 && input.lines.size() > 0",
        "input.lines[0].pieces == 1",
        '"gift" in input.tags',
        'has(input.labels.team) && input.labels.team == "red"',
        'input.labels.all(name, name.startsWith("x"))',
        "input.extra.anything.goes > 5",
        '"ops" in agent.groups && agent.name != "x" && agent.owner == "ada"',
        'tool.risk == "high" || tool.risk_level >= 3 || "money" in tool.capabilities',
        'context.user_id != ""',
        "now.getHours() >= 8 && now.getHours() < 18 && now.getDayOfWeek() in [1, 2, 3, 4, 5]",
        'now < timestamp("2030-01-01T00:00:00Z") && now - timestamp("2020-01-01T00:00:00Z") > duration("1h")',
        'now + duration("90m") > now',
        'string(input.count) == "5" || int(input.to.city) == 5',
        "-input.amount < 0 && -input.count < 5",
        "{'EUR': 100, 'USD': 200}[input.currency] > input.amount",
        "[1, 2.5].exists(limit, input.amount < limit)",
        "input.urgent ? input.amount < 100 : input.amount < 500",
    ],
)
def test_a_sound_condition_may_be_saved(text: str) -> None:
    assert found(text) == ""


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("inptu.amount < 5", "There is no variable `inptu` (did you mean `input`?)"),
        ("amount < 5", "There is no variable `amount`"),
        ("input.amuont < 5", "`input` has no field `amuont` (did you mean `amount`?)"),
        ('input["amuont"] < 5', "`input` has no field `amuont` (did you mean `amount`?)"),
        ("has(input.amuont)", "`input` has no field `amuont`"),
        ('input.to.street == "x"', "`input.to` has no field `street`"),
        ('agent.nmae == "x"', "`agent` has no field `nmae` (did you mean `name`?)"),
        ('tool.rsk == "high"', "`tool` has no field `rsk` (did you mean `risk`?)"),
        ('context.userid == "x"', "`context` has no field `userid` (did you mean `user_id`?)"),
        ("now.hours > 5", "`now` is a moment and has no field `hours`"),
        ("input.lines.exists(line, line.price > 5)", "`line` has no field `price`"),
        ("input.lines.pieces > 5", "`input.lines` is a list and has no field `pieces`"),
    ],
)
def test_unknown_names_are_refused_and_the_nearest_is_told(text: str, words: str) -> None:
    assert words in found(text)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('input.note == "x"', "`input.note` may be absent: ask first, as in `has(input.note) && …`"),
        ('has(input.to.zip) && input.note == "x"', "`input.note` may be absent"),
        ('input.to.zip == "x"', "`input.to.zip` may be absent"),
        ('input.labels.team == "red"', "`input.labels.team` may be absent"),
        ('input.labels["cost centre"] == "x"', 'as in `"cost centre" in input.labels && …`'),
        ("input.lines.all(line, line.part_of.pieces > 1)", "`line.part_of` may be absent"),
        ("has(input.lines[0].part_of.sku)", "`input.lines[0].part_of` may be absent"),
    ],
)
def test_a_field_that_may_be_absent_must_be_asked_for(text: str, words: str) -> None:
    assert words in found(text)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('input.amount == "x"', '`input.amount` is a number and `"x"` is a text: they are never equal'),
        ('input.amount != "x"', "they are never equal"),
        ('input.amount < "x"', "`<` cannot compare them"),
        ("input.currency == 5 || input.urgent", "`input.currency` is a text and `5` is a whole number"),
        ("input.currency == null", "they are never equal"),
        ("input.reference > 5", "`input.reference` is a text or null and `5` is a whole number"),
        ("now > 5", "`now` is a moment and `5` is a whole number"),
        ('now > "2026-01-01T00:00:00Z"', "`<` cannot compare them".replace("<", ">")),
        ("input.to < input.to", "`<` cannot compare them"),
        ("input.amount + 1 > 5", "`+` does not mix whole and decimal numbers"),
        ("input.count * 1.5 > 5.0", "`*` does not mix whole and decimal numbers"),
        ('input.currency + 1 == "x"', "one cannot be added to the other"),
        ("input.currency - input.currency == 1", "one cannot be reduced by the other"),
        ("input.count / 0 > 1", "`input.count / 0` divides by zero"),
        ('"EUR" in input.currency', "write `input.currency.contains(…)`"),
        ('input.amount in ["a"]', "it is never in there"),
        ("5 in input.tags", "it is never in there"),
        ("!input.amount", "`!` turns round true or false; `input.amount` is a number"),
        ("-input.currency == 1", "`-` turns round a whole number or a decimal number; `input.currency` is a text"),
        ("input.urgent && input.amount", "`&&` joins true or false; `input.amount` is a number"),
        ("input.amount ? true : false", "`?` asks for true or false"),
        ("input.lines.all(line, line.sku)", "`all()` asks of each item true or false; `line.sku` is a text"),
        ("input.amount.exists(x, true)", "`exists()` goes through a list or an object"),
        ("input.lines['a'].sku == 'x'", "`input.lines` is a list and has no field `a`"),
        ("input.lines[input.currency].sku == 'x'", "`input.lines` is indexed by a whole number"),
        ("input.currency[0] == 'E'", "only lists and objects have items"),
        ("{input.to: 1}.size() > 0", "cannot be a key"),
        ("size(input.amount) > 1", "`size()` takes a text or a list or an object; `input.amount` is a number"),
        ("input.currency.startsWith(5)", "`startsWith()` takes a text; `5` is a whole number"),
        ("int(input.urgent) == 1", "`int()` takes"),
        ("input.amount", "A condition is true or false; this one is a number"),
        ("'x'", "A condition is true or false; this one is a text"),
        ("input.lines.map(line, line.sku)", "A condition is true or false; this one is a list"),
        ("null", "A condition is true or false; this one is null"),
    ],
)
def test_kinds_that_do_not_go_together_are_refused(text: str, words: str) -> None:
    assert words in found(text)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('agent.name.lowerAscii() == "x"', "The function `lowerAscii()` is not allowed in a condition"),
        ("type(input.amount) == 1", "The function `type()` is not allowed"),
        ("bool(input.currency)", "The function `bool()` is not allowed"),
        ("dyn(input.amount) > 1", "The function `dyn()` is not allowed"),
        ('input.currency.startWith("E")', "(did you mean `startsWith`?)"),
        ('matches(agent.name, "x")', "`matches()` is written behind a value, as in `input.name.matches(…)`"),
        ("input.currency.int() == 5", "`int()` is written before a value"),
        ('now.getHours("Europe/Berlin") > 5', "`getHours()` takes no arguments; moments are in UTC"),
        ("size() == 1", "`size()` takes 1 argument"),
        ("agent.name.matches(input.currency)", "takes a pattern that is written out"),
        ('agent.name.matches("(")', 'The pattern `"("` is not accepted'),
        ('agent.name.matches("(?=a)")', "is not accepted"),
        (r'agent.name.matches(r"^\w{50}$")', "is not accepted"),
        ('now > timestamp("2026-01-01")', '`timestamp("2026-01-01")` cannot be computed'),
        ('now - now > duration("1d")', '`duration("1d")` cannot be computed'),
        ("input.count == 9223372036854775807 + 1", "cannot be computed"),
    ],
)
def test_only_known_functions_with_good_arguments_are_allowed(text: str, words: str) -> None:
    assert words in found(text)


def test_without_a_schema_the_input_may_hold_anything() -> None:
    for text in ('input.a.b[0].c == "x"', "input.amount + 1.5 > 2.0", "input.flag", "input.list.exists(x, x.y > 1)"):
        assert problems(text) == []
    assert problems("agent.nmae == input.x") != []


def test_with_several_tools_a_field_must_be_known_to_one_and_asked_for_unless_all_have_it() -> None:
    refund = object_of("amount", "note", amount={"type": "number"}, note={"type": "string"})
    payout = object_of("amount", amount={"type": "string"})
    assert found("input.amount == 5", refund, payout) == ""
    assert found('input.amount == "5"', refund, payout) == ""
    assert "`input.note` may be absent" in found('input.note == "x"', refund, payout)
    assert found('has(input.note) && input.note == "x"', refund, payout) == ""
    assert "has no field `nope`" in found("input.nope == 1", refund, payout)
    assert "they are never equal" in found("input.amount == true", refund, payout)


def test_an_object_without_declared_fields_is_open_and_one_that_is_left_open_on_purpose_too() -> None:
    assert found("input.x == 1", {"type": "object"}) == ""
    is_open = {"type": "object", "properties": {"a": {}}, "additionalProperties": True}
    assert "`input.b` may be absent" in found("input.b == 1", is_open)
    assert found("has(input.b) && input.b == 1", is_open) == ""
    undeclared = {"type": "object", "properties": {"a": {}}}
    assert "has no field `b`" in found("has(input.b)", undeclared)
    patterned = {"type": "object", "patternProperties": {"^x-": {"type": "string"}}, "additionalProperties": False}
    assert found('"x-a" in input && input["x-a"] == "1"', patterned) == ""


def test_unions_and_conjunctions_of_schemas_are_followed() -> None:
    either = object_of("id", id={"anyOf": [{"type": "string"}, {"type": "integer"}]})
    assert found('input.id == "x" || input.id == 5', either) == ""
    assert "they are never equal" in found("input.id == true", either)
    both = {"allOf": [object_of("a", a={"type": "string"}), {"required": ["b"], "properties": {"b": {"const": 7}}}]}
    assert found('input.a == "x" && input.b == 7', both) == ""
    assert "can never be true" in found("input.b == 8", both)
    choice = {"oneOf": [object_of("a", a={"type": "string"}), object_of("b", b={"type": "string"})]}
    assert "`input.a` may be absent" in found('input.a == "x"', choice)
    assert found('has(input.a) && input.a == "x"', choice) == ""


def test_a_schema_that_refers_to_itself_is_followed_as_far_as_the_condition_goes() -> None:
    nested = "input.lines[0].part_of.part_of.part_of"
    asks = "has(input.lines[0].part_of) && has(input.lines[0].part_of.part_of) && "
    asks += "has(input.lines[0].part_of.part_of.part_of) && "
    assert found(f"{asks}{nested}.pieces > 1") == ""
    assert "is a whole number" in found(f'{asks}{nested}.pieces == "x"')
    circle = {"type": "object", "$ref": "#"}
    assert found("input.x == 1", circle) == ""


def test_a_schema_with_too_many_branches_is_taken_as_anything() -> None:
    many = [{"type": "object", "properties": {f"p{number}": {"type": "string"}}} for number in range(100)]
    assert found("input.whatever == 1", {"type": "object", "anyOf": many}) == ""


def test_several_problems_are_all_told_but_not_without_end() -> None:
    told = problems('input.nope == 1 && agent.nmae == "x" && input.amount == "x"', input_schemas=[SCHEMA])
    assert len(told) == 3
    assert len(problems(" || ".join(f"x{number}" for number in range(60)))) == 10


def test_a_sentence_ends_with_a_stop_and_quotes_long_code_shortly() -> None:
    long = " + ".join(["input.currency"] * 15)
    for told in problems(f"{long} == 5", input_schemas=[SCHEMA]):
        assert told.endswith(".")
        assert len(told) < 250
