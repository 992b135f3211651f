"""A verdict says whether callers of the old version can go on as before, and if not, why."""

from typing import Any

import pytest

from registry.compatibility import Verdict, compare, compare_manifests
from registry.manifestshape import parse
from registry.schemachange import MAX_AGAIN, Comparison
from tests.factories.registry import draft, manifest, numbers, published, tool


def verdict(old: dict[str, Any], new: dict[str, Any]) -> Verdict:
    """The verdict on one tool whose description changed from old to new."""
    return compare_manifests(parse(manifest("T", "1.0.0", old)), parse(manifest("T", "1.1.0", new)))


def takes(**properties: Any) -> dict[str, Any]:
    return {"input": {"type": "object", "properties": properties, "additionalProperties": False}}


def takes_open(**properties: Any) -> dict[str, Any]:
    return {"input": {"type": "object", "properties": properties}}


def gives(schema: Any) -> dict[str, Any]:
    return {"output": schema}


def secret(name: str) -> dict[str, Any]:
    return {"requirements": {"secrets": [{"id": name}]}}


def google(*scopes: str) -> dict[str, Any]:
    return {"requirements": {"authorization": [{"id": "google", "oauth2": {"scopes": list(scopes)}}]}}


def at_most(bound: int, **properties: Any) -> dict[str, Any]:
    """An input whose definition q, which p refers to, has this maximum."""
    shelf = {"q": {"type": "integer", "maximum": bound}, "p": {"items": {"$ref": "#/$defs/q"}}}
    return {"input": {**takes(**properties)["input"], "$defs": shelf}}


def extends(*named: str, base: tuple[str, ...] = ("a",), **words: Any) -> dict[str, Any]:
    """An input that names parameters beside those of a base, and refuses all others."""
    own = {"type": "object", "properties": dict.fromkeys(named, TEXT), "unevaluatedProperties": False}
    return {"input": {**own, **words, "$defs": {"base": {"properties": dict.fromkeys(base, TEXT)}}}}


TEXT = {"type": "string"}
BASE: dict[str, Any] = {"$ref": "#/$defs/base"}
NAME = {"$defs": {"name": {"type": "string"}}}
BREAKING: list[tuple[str, dict[str, Any], dict[str, Any], str]] = [
    (
        "required parameter added",
        {"input": numbers("a")},
        {"input": numbers("a", "b")},
        "parameter b was added and is required",
    ),
    (
        "parameter now required",
        takes(a={}),
        {"input": {**takes(a={})["input"], "required": ["a"]}},
        "parameter a is now required",
    ),
    ("parameter removed", takes(a={}, b={}), takes(a={}), "parameter b was removed"),
    ("others refused", takes_open(a={}), takes(a={}), "no longer accepts other parameters"),
    (
        "type narrowed",
        takes(a={"type": ["string", "null"]}),
        takes(a={"type": "string"}),
        "parameter a must now be of type string",
    ),
    ("type given", takes(a={}), takes(a={"type": "string"}), "parameter a must now be of type string"),
    (
        "number to integer",
        takes(a={"type": "number"}),
        takes(a={"type": "integer"}),
        "parameter a must now be of type integer",
    ),
    ("enum value removed", takes(a={"enum": ["x", "y"]}), takes(a={"enum": ["x"]}), "parameter a no longer accepts y"),
    (
        "enum given",
        takes(a={"type": "string"}),
        takes(a={"type": "string", "enum": ["x"]}),
        "accepts only certain values",
    ),
    ("maximum lowered", takes(a={"maximum": 9}), takes(a={"maximum": 5}), "parameter a has a maximum of 5, was 9"),
    ("minimum raised", takes(a={"minimum": 0}), takes(a={"minimum": 1}), "parameter a has a minimum of 1, was 0"),
    (
        "maxLength given",
        takes(a={"type": "string"}),
        takes(a={"type": "string", "maxLength": 5}),
        "parameter a has a new maxLength of 5",
    ),
    (
        "pattern given",
        takes(a={"type": "string"}),
        takes(a={"type": "string", "pattern": "x"}),
        "parameter a has a new pattern",
    ),
    (
        "deep inside",
        takes(a={"items": {"properties": {"b": {"maximum": 2}}}}),
        takes(a={"items": {"properties": {"b": {"maximum": 1}}}}),
        "parameter a[].b has a maximum of 1",
    ),
    (
        "behind a reference",
        {"input": {**takes(a={"$ref": "#/$defs/name"})["input"], **NAME}},
        takes(a={"type": "integer"}),
        "parameter a must now be of type integer",
    ),
    (
        "a form dropped",
        takes(a={"anyOf": [{"type": "string"}, {"type": "null"}]}),
        takes(a={"anyOf": [{"type": "string"}]}),
        "parameter a no longer accepts one of its forms",
    ),
    (
        "behind a reference in allOf",
        at_most(100, a={"allOf": [{"$ref": "#/$defs/q"}]}),
        at_most(1, a={"allOf": [{"$ref": "#/$defs/q"}]}),
        "parameter a has another allOf",
    ),
    (
        "behind a reference in a reference in not",
        at_most(1, a={"not": {"items": {"$ref": "#/$defs/p"}}}),
        at_most(100, a={"not": {"items": {"$ref": "#/$defs/p"}}}),
        "parameter a has another not",
    ),
    (
        "behind a reference with a looser bound beside it",
        at_most(100, a={"$ref": "#/$defs/q", "maximum": 500}),
        at_most(1, a={"$ref": "#/$defs/q", "maximum": 500}),
        "parameter a has a maximum of 1, was 100",
    ),
    (
        "tighter beside a reference",
        at_most(100, a={"$ref": "#/$defs/q"}),
        at_most(100, a={"$ref": "#/$defs/q", "maximum": 1}),
        "parameter a has a maximum of 1, was 100",
    ),
    (
        "one more must be contained",
        takes(a={"contains": {"type": "string"}, "minContains": 0}),
        takes(a={"contains": {"type": "string"}}),
        "parameter a has a minContains of 1, was 0",
    ),
    (
        "a name of a map given a meaning",
        {"input": {"type": "object", "additionalProperties": {"type": "string"}}},
        {"input": {"type": "object", "properties": {"n": {"type": "number"}}, "additionalProperties": True}},
        "parameter n must now be of type number",
    ),
    (
        "names by pattern no longer accepted",
        {"input": {**takes()["input"], "patternProperties": {"^x-": {}}}},
        takes(),
        "parameter ^x- is no longer accepted",
    ),
    (
        "removed where the rest is refused as unevaluated",
        {"input": {**takes_open(a={}, b={})["input"], "unevaluatedProperties": False}},
        {"input": {**takes_open(a={})["input"], "unevaluatedProperties": False}},
        "parameter b was removed",
    ),
    (
        "no longer looked at where the rest is refused as unevaluated",
        {"input": {"type": "object", "allOf": [{"properties": {"a": {}}}], "unevaluatedProperties": False}},
        {"input": {"type": "object", "unevaluatedProperties": False}},
        "input has lost its allOf",
    ),
    (
        "items no longer looked at where the rest is refused as unevaluated",
        takes(a={"items": True, "unevaluatedItems": False}),
        takes(a={"unevaluatedItems": False}),
        "parameter a[] is no longer accepted",
    ),
    (
        "members no longer looked at where the rest is refused as unevaluated",
        takes(a={"additionalProperties": True, "unevaluatedProperties": False}),
        takes(a={"unevaluatedProperties": False}),
        "parameter a no longer accepts other parameters",
    ),
    (
        "output member no longer spoken of",
        gives({"type": "object", "properties": {"total": {"type": "number"}}}),
        gives({"type": "object"}),
        "output total may now differ",
    ),
    (
        "output widened behind a reference in allOf",
        gives({"allOf": [{"$ref": "#/$defs/q"}], "$defs": {"q": {"maximum": 1}}}),
        gives({"allOf": [{"$ref": "#/$defs/q"}], "$defs": {"q": {"maximum": 9}}}),
        "output may now differ",
    ),
    ("output widened", gives({"type": "number"}), gives({"type": ["number", "null"]}), "output may now differ"),
    ("output value added", gives({"enum": ["x"]}), gives({"enum": ["x", "y"]}), "output may now differ"),
    (
        "output member no longer sure",
        gives({"type": "object", "required": ["a"]}),
        gives({"type": "object"}),
        "output a may now differ",
    ),
    ("output removed", gives({"type": "number"}), gives(None), "output was removed"),
    ("output added", gives(None), gives({"type": "number"}), "output was added"),
    ("risk raised", {"risk": "low"}, {"risk": "high"}, "risk was raised from low to high"),
    ("capability added", {"capabilities": []}, {"capabilities": ["data.write"]}, "capability data.write was added"),
    ("secret added", {}, secret("KEY"), "secret KEY is now required"),
    ("authorization added", {}, google(), "authorization google is now required"),
    ("scope added", google("a"), google("a", "b"), "authorization google now needs the scope b"),
    ("user_id required", {}, {"requirements": {"userId": True}}, "user_id is now required"),
    (
        "idempotency weakened",
        {"idempotency": "read"},
        {"idempotency": "keyed"},
        "idempotency was weakened from read to keyed",
    ),
    ("no longer inferrable", {}, {"nonInferrable": ["a"]}, "parameter a may no longer be filled in by a model"),
]
SAFE: list[tuple[str, dict[str, Any], dict[str, Any]]] = [
    ("nothing", {}, {}),
    ("optional parameter added", takes(a={}), takes(a={}, b={"type": "string"})),
    ("optional parameter added where others were ignored", takes_open(a={}), takes_open(a={}, b={"type": "string"})),
    ("output member added", gives({"type": "object"}), gives({"type": "object", "properties": {"a": {}}})),
    (
        "nothing, with a looser bound beside a reference",
        at_most(9, a={"$ref": "#/$defs/q", "maximum": 99, "properties": {"b": {"$ref": "#/$defs/p"}}}),
        at_most(9, a={"$ref": "#/$defs/q", "maximum": 99, "properties": {"b": {"$ref": "#/$defs/p"}}}),
    ),
    (
        "a definition changed that nothing refers to",
        at_most(9, a={"allOf": [{"type": "string"}]}),
        at_most(1, a={"allOf": [{"type": "string"}]}),
    ),
    (
        "what was the case is said",
        takes(a={"contains": {"type": "string"}}),
        takes(a={"contains": {"type": "string"}, "minContains": 1}),
    ),
    ("optional parameter added beside a base", extends("b", **BASE), extends("b", "c", **BASE)),
    ("optional parameter added beside allOf", extends("b", allOf=[BASE]), extends("b", "c", allOf=[BASE])),
    ("optional parameter added to a base", extends("b", **BASE), extends("b", **BASE, base=("a", "c"))),
    (
        "optional parameter added beside allOf that leaves others open",
        {"input": {**takes_open(a={})["input"], "allOf": [{"additionalProperties": True}]}},
        {"input": {**takes_open(a={}, b=TEXT)["input"], "allOf": [{"additionalProperties": True}]}},
    ),
    ("a base written out", extends("b", **BASE), takes(a=TEXT, b=TEXT)),
    ("allOf written out", extends("b", allOf=[BASE]), takes(a=TEXT, b=TEXT)),
    ("description changed", {}, {"description": "Other."}),
    (
        "parameter described",
        takes(a={"type": "string"}),
        takes(a={"type": "string", "description": "x", "title": "A", "default": 1}),
    ),
    ("parameter forgotten but still accepted", takes_open(a={"type": "string"}), takes_open()),
    ("type widened", takes(a={"type": "string"}), takes(a={"type": ["string", "null"]})),
    ("integer to number", takes(a={"type": "integer"}), takes(a={"type": "number"})),
    ("enum value added", takes(a={"enum": ["x"]}), takes(a={"enum": ["x", "y"]})),
    ("enum lifted", takes(a={"enum": ["x"]}), takes(a={})),
    ("bounds loosened", takes(a={"maximum": 5, "minLength": 2}), takes(a={"maximum": 9, "minLength": 1})),
    ("others accepted", takes(a={}), takes_open(a={})),
    ("no longer required", {"input": numbers("a", "b")}, {"input": {**numbers("a", "b"), "required": ["a"]}}),
    ("a form added", takes(a={"type": "string"}), takes(a={"anyOf": [{"type": "string"}, {"type": "null"}]})),
    (
        "the same behind a reference",
        takes(a={"type": "string"}),
        {"input": {**takes(a={"$ref": "#/$defs/name"})["input"], **NAME}},
    ),
    ("output narrowed", gives({"type": ["number", "null"]}), gives({"type": "number"})),
    ("output promised", gives({}), gives({"type": "number"})),
    ("risk lowered", {"risk": "high"}, {"risk": "low"}),
    ("capability dropped", {"capabilities": ["data.write"]}, {"capabilities": []}),
    ("requirement dropped", secret("KEY"), {}),
    ("idempotency strengthened", {"idempotency": "keyed"}, {"idempotency": "read"}),
    ("another endpoint", {}, {"runtime": {"type": "http", "endpoint": "http://127.0.0.1:9/new"}}),
]


@pytest.mark.parametrize(("old", "new", "reason"), [case[1:] for case in BREAKING], ids=[case[0] for case in BREAKING])
def test_a_breaking_change_is_named_with_tool_and_parameter(
    old: dict[str, Any], new: dict[str, Any], reason: str
) -> None:
    found = verdict(old, new)
    assert found.level == "breaking"
    assert any(told.startswith("Add: ") and reason in told for told in found.reasons), found.reasons


@pytest.mark.parametrize(("old", "new"), [case[1:] for case in SAFE], ids=[case[0] for case in SAFE])
def test_a_safe_change_is_safe(old: dict[str, Any], new: dict[str, Any]) -> None:
    assert verdict(old, new).level == "safe"


def test_tools_may_come_but_not_go() -> None:
    one = parse(manifest("T", "1.0.0", tool("Add")))
    two = parse(manifest("T", "1.1.0", tool("Add"), tool("Subtract")))
    assert compare_manifests(one, two) == Verdict("safe", ["Subtract: was added"])
    assert compare_manifests(two, one) == Verdict("breaking", ["Subtract: was removed"])


def test_a_recursive_schema_comes_to_an_end() -> None:
    tree = {
        "input": {
            "type": "object",
            "properties": {"left": {"$ref": "#"}, "right": {"type": "array", "items": {"$ref": "#"}}},
        }
    }
    assert verdict(tree, tree).level == "safe"


def test_a_schema_that_became_recursive_comes_to_an_end() -> None:
    nested = {"type": "object", "additionalProperties": {"$ref": "#"}}
    assert verdict({"input": {"type": "object"}}, {"input": nested}).level == "breaking"


def test_a_form_that_became_recursive_comes_to_an_end() -> None:
    nested = {"anyOf": [{"maximum": 1}, {"prefixItems": [{"$ref": "#/properties/a"}]}]}
    assert verdict(takes(a={}), takes(a=nested)).level == "safe"


@pytest.mark.django_db
def test_stored_versions_are_compared_by_their_rows() -> None:
    old = published("Calculator", "1.0.0", {"input": numbers("a", "b")})
    assert compare(old, draft("Calculator", "1.1.0", {"input": numbers("a", "b", c={"type": "number"})})) == Verdict(
        "safe", ["Add: optional parameter c was added"]
    )
    assert compare(old, draft("Calculator", "2.0.0", {"input": numbers("a", "b", "c")})).is_breaking


def test_what_changed_behind_a_shared_reference_is_told_of_each_place() -> None:
    def schema(required: list[str]) -> dict[str, Any]:
        address = {"type": "object", "properties": {"street": {"type": "string"}}, "required": required}
        place = {"$ref": "#/$defs/address"}
        properties = {"home": place, "others": {"type": "array", "items": place}, "work": place}
        return {"type": "object", "properties": properties, "$defs": {"address": address}}

    assert list(Comparison(schema([]), schema(["street"])).narrowings()) == [
        ("home.street", "is now required"),
        ("others[].street", "is now required"),
        ("work.street", "is now required"),
    ]


def test_what_is_told_again_comes_to_an_end() -> None:
    def schema(kind: str) -> dict[str, Any]:
        """Each definition refers to the next one twice: sixteen of them are 65,536 places."""
        parts: dict[str, Any] = {f"d{n}": {"properties": {}} for n in range(17)}
        for n in range(16):
            parts[f"d{n}"]["properties"] = {name: {"$ref": f"#/$defs/d{n + 1}"} for name in "ab"}
        parts["d16"] = {"type": kind}
        return {"type": "object", "properties": {"x": {"$ref": "#/$defs/d0"}}, "$defs": parts}

    told = list(Comparison(schema("string"), schema("integer")).narrowings())
    assert 2 <= len(told) <= MAX_AGAIN + 2
    assert told[0][0] == "x" + ".a" * 16
