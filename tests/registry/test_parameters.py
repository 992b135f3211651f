"""An input schema as a table, and two texts side by side."""

from typing import Any

import pytest

from registry.parameters import MAX_ROWS, parameters, type_of
from registry.sidebyside import MAX_LINES, rows, unified


def test_parameters_are_listed_in_order_with_what_limits_them() -> None:
    schema = {
        "type": "object",
        "properties": {
            "amount": {"type": "number", "exclusiveMinimum": 0, "maximum": 500, "description": "How much."},
            "where": {"type": "object", "properties": {"zip": {"type": "string", "default": "0"}}, "required": ["zip"]},
        },
        "required": ["amount"],
    }
    amount, where, zip_code = parameters(schema, ["amount"])
    assert (amount.name, amount.type, amount.is_required, amount.is_inferrable) == ("amount", "number", True, False)
    assert amount.limits == "more than 0, at most 500"
    assert (where.is_required, where.is_inferrable) == (False, True)
    assert (zip_code.name, zip_code.is_required, zip_code.limits) == ("where.zip", True, "0 if absent")


@pytest.mark.parametrize(
    ("schema", "told"),
    [
        (True, "anything"),
        (False, "nothing"),
        ({}, "anything"),
        ({"type": "array", "items": {"type": "string"}}, "list of string"),
        ({"type": ["string", "null"]}, "string or null"),
        ({"enum": ["a", "b"]}, "one of a, b"),
        ({"enum": list(range(20))}, "one of 0, 1, 2, 3, 4, 5, 6, 7, …"),
        ({"const": "x" * 100}, f"exactly {'x' * 59}…"),
        ({"anyOf": [{"type": "string"}, {"type": "integer"}]}, "string or integer"),
        ({"$ref": "#/$defs/City"}, "City"),
    ],
)
def test_a_type_is_told_in_a_few_words(schema: Any, told: str) -> None:
    assert type_of(schema) == told


@pytest.mark.parametrize("schema", [None, [], "x", {"properties": []}, {"properties": {"a": 3}, "required": "a"}])
def test_an_odd_schema_gives_a_short_table_and_no_error(schema: Any) -> None:
    assert len(parameters(schema)) <= 1


def test_a_table_is_bounded() -> None:
    assert len(parameters({"properties": {str(number): {} for number in range(1000)}})) == MAX_ROWS


def test_changed_removed_and_added_lines_stand_side_by_side() -> None:
    old, new = "same\nold\ngone\nend", "same\nnew\nend\nmore"
    assert [(row.kind, row.old, row.new) for row in rows(old, new) or []] == [
        ("same", "same", "same"),
        ("changed", "old", "new"),
        ("removed", "gone", ""),
        ("same", "end", "end"),
        ("added", "", "more"),
    ]
    assert rows("same", "same") == []
    assert "-gone" in (unified(old, new) or [])


def test_far_apart_changes_are_separated_by_a_gap() -> None:
    old = "\n".join(map(str, range(40)))
    kinds = [row.kind for row in rows(old, old.replace("2\n", "two\n").replace("39", "last")) or []]
    assert "gap" in kinds


def test_texts_that_are_too_long_are_not_compared() -> None:
    long = "x\n" * MAX_LINES
    assert rows(long, "x") is None
    assert unified(long, "x") is None
