"""Schemas without references mean the same to a reader, and always end."""

import time
from typing import Any

import orjson
import pytest

from execution.protocols.inlining import described, without_refs


def test_r13_a_local_reference_is_replaced_by_what_it_means() -> None:
    schema = {
        "type": "object",
        "properties": {
            "to": {"$ref": "#/$defs/Address"},
            "cc": {"type": "array", "items": {"$ref": "#/$defs/Address"}},
        },
        "$defs": {"Address": {"type": "string", "format": "email"}},
    }
    address = {"type": "string", "format": "email"}
    assert without_refs(schema) == {
        "type": "object",
        "properties": {"to": address, "cc": {"type": "array", "items": address}},
    }


def test_r13_the_root_itself_may_be_a_reference() -> None:
    schema = {"$ref": "#/definitions/In", "definitions": {"In": {"type": "object", "properties": {}}}}
    assert without_refs(schema) == {"type": "object", "properties": {}}


def test_r13_notes_beside_a_reference_win_and_rules_beside_it_add_up() -> None:
    defs = {"N": {"type": "number", "description": "any number"}}
    noted = {"properties": {"a": {"$ref": "#/$defs/N", "description": "mine"}}, "$defs": defs}
    assert without_refs(noted)["properties"]["a"] == {"type": "number", "description": "mine"}
    ruled = {"properties": {"a": {"$ref": "#/$defs/N", "minimum": 1}}, "$defs": defs}
    assert without_refs(ruled)["properties"]["a"] == {"minimum": 1, "allOf": [defs["N"]]}


def test_r13_a_schema_that_contains_itself_becomes_wider_where_it_would_begin_again() -> None:
    tree: dict[str, Any] = {
        "$ref": "#/$defs/Tree",
        "$defs": {
            "Tree": {"type": "object", "properties": {"kids": {"type": "array", "items": {"$ref": "#/$defs/Tree"}}}}
        },
    }
    assert without_refs(tree) == {
        "type": "object",
        "properties": {"kids": {"type": "array", "items": {"type": "object"}}},
    }


def test_r13_parameters_named_like_keywords_stay() -> None:
    schema = {"properties": {"$ref": {"type": "string"}, "$defs": {"type": "number"}, "definitions": True}}
    assert without_refs(schema) == schema


def test_r13_values_that_look_like_schemas_stay() -> None:
    schema = {"enum": [{"$ref": "#/nowhere"}], "const": {"$defs": 1}, "default": {"$ref": "x"}}
    assert without_refs(schema) == schema


@pytest.mark.parametrize("ref", ["#/$defs/Missing", "#anchor", "https://example.com/x", "#/properties/a/9", "x"])
def test_r13_a_reference_to_nothing_means_anything(ref: str) -> None:
    assert without_refs({"properties": {"a": {"$ref": ref}}}) == {"properties": {"a": {}}}


def test_r13_pointers_are_unescaped() -> None:
    schema = {"properties": {"a": {"$ref": "#/$defs/x~1y%20z"}}, "$defs": {"x/y z": {"type": "null"}}}
    assert without_refs(schema) == {"properties": {"a": {"type": "null"}}}


def test_r13_a_small_schema_with_a_huge_expansion_stays_small() -> None:
    defs: dict[str, Any] = {"d0": {"type": "string"}}
    for level in range(1, 40):
        below = {"$ref": f"#/$defs/d{level - 1}"}
        defs[f"d{level}"] = {"type": "object", "properties": {"a": below, "b": below}}
    before = time.process_time()
    flat = orjson.dumps(without_refs({"$ref": "#/$defs/d39", "$defs": defs}))
    assert time.process_time() - before < 0.5
    assert len(flat) < 100_000
    assert b"$ref" not in flat


def test_r13_a_long_chain_of_references_ends() -> None:
    defs: dict[str, Any] = {f"d{n}": {"items": {"$ref": f"#/$defs/d{n + 1}"}} for n in range(450)}
    assert b"$ref" not in orjson.dumps(without_refs({"$ref": "#/$defs/d0", "$defs": defs}))


def test_r13_every_parameter_has_a_description() -> None:
    schema = {
        "properties": {
            "own": {"description": "mine"},
            "titled": {"title": "Title"},
            "bare": {"type": "number"},
            "empty": {"description": ""},
            "any": True,
            "never": False,
        }
    }
    told = {name: each["description"] for name, each in described(schema)["properties"].items()}
    assert told == {"own": "mine", "titled": "Title", "bare": "bare", "empty": "empty", "any": "any", "never": "never"}


def test_r13_a_tool_without_parameters_stays_as_it_is() -> None:
    assert described({"type": "object"}) == {"type": "object"}
