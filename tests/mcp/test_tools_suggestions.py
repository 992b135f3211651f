"""Names that were nearly right, and examples of what a tool takes."""

import time
from typing import Any

import pytest

from execution.protocols.mcp.examples import _Maker, example
from execution.suggestions import _distance, nearest
from registry.resolution import resolve
from registry.schemas import compiled
from registry.toolref import ToolRef
from tests.factories.registry import numbers, published


@pytest.mark.parametrize(
    ("a", "b", "distance"),
    [
        ("", "", 0),
        ("abc", "abc", 0),
        ("abc", "abd", 1),
        ("abc", "ab", 1),
        ("abc", "xabc", 1),
        ("kitten", "sitting", 3),
        ("abcdef", "fedcba", 4),
        ("", "abc", 3),
        ("abc", "", 3),
        ("a" * 60, "a" * 57 + "bbb", 3),
        ("a" * 60, "b" * 60, 4),
    ],
)
def test_the_distance_is_levenshteins_up_to_three_and_above_that_just_more(a: str, b: str, distance: int) -> None:
    assert _distance(a, b) == distance == _distance(b, a)


def test_at_most_three_names_nearest_first_and_none_that_is_far() -> None:
    names = ["Mail_Send", "Mail_Sent", "Mail_Seen", "Mail_Spend", "Calculator_Add"]
    assert nearest("mail_sen", names) == ["Mail_Seen", "Mail_Send", "Mail_Sent"]
    assert nearest("Calculator.Add", names) == ["Calculator_Add"]
    assert nearest("something_else", names) == []


def test_a_name_that_nobody_knows_costs_little_among_very_many() -> None:
    names = [f"Toolkit_{number:04}_{'x' * 50}" for number in range(20_000)]
    began = time.perf_counter()
    assert nearest("Toolkit_" + "y" * 55, names) == []
    assert time.perf_counter() - began < 1.0


@pytest.mark.parametrize(
    ("schema", "made"),
    [
        (numbers("a", "b"), {"a": 1, "b": 1}),
        ({"type": "object", "properties": {"a": {"type": "integer", "minimum": 3}, "b": {}}}, {"a": 3}),
        (numbers("n", n={"type": "integer", "exclusiveMinimum": 0, "multipleOf": 5}), {"n": 5}),
        (numbers("when", when={"type": "string", "format": "date"}), {"when": "2026-01-31"}),
        (numbers("word", word={"enum": ["red", "green"]}), {"word": "red"}),
        (numbers("word", word={"type": "string", "examples": ["a@b.example"]}), {"word": "a@b.example"}),
        (numbers("word", word={"type": "string", "minLength": 6, "maxLength": 6}), {"word": "textxx"}),
        (numbers("some", some={"type": "array", "items": {"type": "boolean"}, "minItems": 2}), {"some": [True, True]}),
        (numbers("it", it=numbers("x")), {"it": {"x": 1}}),
        ({**numbers("it", it={"$ref": "#/$defs/It"}), "$defs": {"It": {"const": 5}}}, {"it": 5}),
        (numbers("it", it={"anyOf": [{"type": "null"}, {"type": "string"}]}), {"it": None}),
    ],
)
def test_an_example_has_what_is_required_in_the_simplest_form(schema: dict[str, Any], made: dict[str, Any]) -> None:
    assert _Maker(schema).made(schema, 0) == made


def test_an_example_that_the_tool_itself_would_refuse_is_not_shown() -> None:
    assert compiled(numbers("a")).violations({"a": 1}) == []
    deep: dict[str, Any] = {"type": "object", "properties": {"a": {"$ref": "#"}}, "required": ["a"]}
    odd = numbers("code", code={"type": "string", "pattern": "^[0-9]{8}$"})
    vast = numbers("n", n={"type": "integer", "minimum": 1e308, "multipleOf": 1e-300})
    for schema in (deep, odd, vast):
        assert example(_Tool(schema)) is None
    assert example(_Tool(numbers("a"))) == {"a": 1}


class _Tool:
    """As much of a tool as an example is made of."""

    non_inferrable = ()

    def __init__(self, schema: dict[str, Any]) -> None:
        self.input_schema, self.input = schema, compiled(schema)


@pytest.mark.django_db
def test_an_example_leaves_out_what_a_model_must_not_fill_in() -> None:
    published("Mail", "1.0.0", {"input": numbers("a", "owner"), "nonInferrable": ["owner"]})
    tool = resolve(ToolRef("Mail", "Add"))
    assert tool is not None
    assert example(tool) == {"a": 1}


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "array", "minItems": 1_000_000_000},
        {"$ref": "#/$defs/all", "$defs": {"all": {"anyOf": [
            {"type": "object", "properties": {f"p{n}": {"$ref": "#/$defs/all"} for n in range(300)},
             "required": [f"p{n}" for n in range(300)]},
            {"type": "string"},
        ]}}},
    ],
)  # fmt: skip
def test_no_example_is_made_of_what_would_be_endless(schema: dict[str, Any]) -> None:
    start = time.process_time()
    whole = numbers("word", word={name: part for name, part in schema.items() if name != "$defs"})
    assert example(_Tool({**whole, "$defs": schema.get("$defs", {})})) is None
    assert time.process_time() - start < 0.5
