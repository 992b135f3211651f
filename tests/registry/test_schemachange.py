"""Where no narrowing is told, the new schema accepts all that the old one did; the validator is the measure."""

import time
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from registry.schemachange import Comparison
from registry.schemacheck import problems
from registry.schemaparts import validator

BOUND = st.integers(0, 3)
SMALL = st.sampled_from(
    [True, False, {}, {"type": "integer"}, {"type": "string"}, {"maximum": 1}, {"$ref": "#/$defs/q"}]
)


def keywords(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    named = st.dictionaries(st.sampled_from(["a", "b"]), inner, max_size=2)
    several = st.lists(inner, min_size=1, max_size=2)
    return st.fixed_dictionaries(
        {},
        optional={
            "type": st.sampled_from(["integer", "object", "array", ["integer", "object"]]),
            "$ref": st.sampled_from(["#/$defs/q", "#/$defs/p"]),
            "maximum": BOUND,
            "minimum": BOUND,
            "enum": st.lists(BOUND, min_size=1, max_size=3, unique=True),
            "required": st.sampled_from([["a"], ["a", "b"]]),
            "properties": named,
            "patternProperties": st.dictionaries(st.sampled_from(["^a", "b"]), inner, max_size=1),
            "additionalProperties": inner,
            "unevaluatedProperties": SMALL,
            "items": inner,
            "prefixItems": several,
            "unevaluatedItems": SMALL,
            "contains": SMALL,
            "minContains": BOUND,
            "allOf": several,
            "anyOf": several,
            "not": SMALL,
        },
    ).map(lambda schema: dict(list(schema.items())[:4]))


SCHEMA = st.recursive(SMALL, keywords, max_leaves=4).filter(lambda schema: isinstance(schema, dict))
WHOLE = st.builds(
    lambda schema, q, p: {**schema, "$defs": {"q": q, "p": p}},
    SCHEMA,
    st.sampled_from([{}, {"type": "integer"}, {"maximum": 2}, {"properties": {"a": {"maximum": 1}}}]),
    st.sampled_from([{"$ref": "#/$defs/q"}, {"$ref": "#/$defs/q", "maximum": 3}, {"items": {"$ref": "#/$defs/q"}}]),
)
_PARTS: list[Any] = [0, 1, 2, 3, "x", [], {}, [0], {"a": 1}]
VALUES: list[Any] = [
    *_PARTS,
    *({"a": part} for part in _PARTS),
    *({"b": part} for part in _PARTS),
    *({"a": 1, "b": part, "c": 1} for part in _PARTS),
    *([part] for part in _PARTS),
    *([1, part] for part in _PARTS),
]


@settings(max_examples=1_500, deadline=None)
@given(st.one_of(st.tuples(WHOLE, WHOLE), WHOLE.flatmap(lambda old: st.tuples(st.just(old), changed(old)))))
def test_what_is_not_told_is_still_accepted(pair: tuple[Any, Any]) -> None:
    old, new = pair
    if problems(old) or problems(new):
        return
    if any(Comparison(old, new, is_promise=True).narrowings()):
        return
    before, after = validator(old), validator(new)
    assert [value for value in VALUES if before.is_valid(value) and not after.is_valid(value)] == []


REST: dict[str, Any] = {"unevaluatedProperties": False}
AB: dict[str, Any] = {"properties": {"a": {}, "b": {}}}
FAULTS: list[tuple[str, dict[str, Any], dict[str, Any]]] = [
    (
        "evaluated behind a reference, refused as additional",
        {
            "$ref": "#/$defs/q",
            "maximum": 0,
            "properties": {},
            **REST,
            "$defs": {"q": {"properties": {"a": {"maximum": 1}}}, "p": {"$ref": "#/$defs/q"}},
        },
        {"additionalProperties": False, "$defs": {"q": {}, "p": {"$ref": "#/$defs/q"}}},
    ),
    (
        "no longer evaluated behind a reference",
        {"$ref": "#/$defs/q", "properties": {"b": {}}, **REST, "$defs": {"q": AB}},
        {"$ref": "#/$defs/q", "properties": {"b": {}}, **REST, "$defs": {"q": {}}},
    ),
    ("evaluated in allOf, refused as additional", {"allOf": [AB], **REST}, {"additionalProperties": False}),
    (
        "evaluated in allOf, narrowed beside it",
        {"allOf": [AB], **REST},
        {"allOf": [AB], "properties": {"a": {"type": "string"}}, **REST},
    ),
    (
        "evaluated by the rest behind a reference",
        {"$ref": "#/$defs/q", **REST, "$defs": {"q": {"unevaluatedProperties": {"type": "integer"}}}},
        {"additionalProperties": False},
    ),
    (
        "not seen by the rest behind a reference",
        {"properties": {"a": {}}, **REST},
        {"$ref": "#/$defs/q", "properties": {"a": {}}, "$defs": {"q": REST}},
    ),
    (
        "one of two allOf gone",
        {"$ref": "#/$defs/q", "allOf": [{}], **REST, "$defs": {"q": {"allOf": [AB]}}},
        {"$ref": "#/$defs/q", "allOf": [{}], **REST, "$defs": {"q": {}}},
    ),
    (
        "items evaluated in allOf, refused as others",
        {"allOf": [{"prefixItems": [{}]}], "unevaluatedItems": False},
        {"items": False},
    ),
    (
        "items evaluated because they are contained",
        {"contains": {"type": "integer"}, "unevaluatedItems": False},
        {"contains": {"type": "integer"}, "items": False},
    ),
]


@pytest.mark.parametrize(("old", "new"), [fault[1:] for fault in FAULTS], ids=[fault[0] for fault in FAULTS])
def test_what_was_evaluated_elsewhere_is_not_taken_for_refused(old: dict[str, Any], new: dict[str, Any]) -> None:
    before, after = validator(old), validator(new)
    assert any(before.is_valid(value) and not after.is_valid(value) for value in VALUES)
    assert any(Comparison(old, new).narrowings())


@settings(max_examples=300, deadline=None)
@given(WHOLE)
def test_what_did_not_change_is_not_told(schema: Any) -> None:
    if not problems(schema):
        assert list(Comparison(schema, {**schema}, is_promise=True).narrowings()) == []


def changed(old: dict[str, Any]) -> st.SearchStrategy[Any]:
    """The same schema with something taken away, or with other definitions."""
    fewer = st.sampled_from(sorted(old)).map(lambda word: {k: v for k, v in old.items() if k != word or k == "$defs"})
    return st.one_of(fewer, WHOLE.map(lambda other: {**old, "$defs": other["$defs"]}))


def ring(length: int, **own: Any) -> dict[str, Any]:
    links = [{"properties": {"a": {"$ref": f"#/$defs/d{(number + 1) % length}"}}, **own} for number in range(length)]
    return {"$ref": "#/$defs/d0", "$defs": {f"d{number}": link for number, link in enumerate(links)}}


def patterned(letter: str) -> dict[str, Any]:
    patterns: dict[str, Any] = {f"^q{number}[a-z]{{30}}": {} for number in range(240)}
    return {"properties": {f"{letter}{number}": {} for number in range(175)}, "patternProperties": patterns}


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (ring(40), ring(41)),
        (ring(400), ring(400, minProperties=0)),
    ],
    ids=["rings that go round together after 1640 steps", "a long ring"],
)
def test_a_comparison_comes_to_an_end_and_what_it_did_not_look_at_is_told(old: Any, new: Any) -> None:
    assert problems(old) == problems(new) == []
    start = time.process_time()
    assert ("", "is too large to be compared in full") in list(Comparison(old, new, is_promise=True).narrowings())
    assert time.process_time() - start < 1


@pytest.mark.parametrize(("definitions", "references"), [(30, 4), (60, 3), (12, 10), (80, 1)])
def test_forms_that_refer_to_one_another_in_an_ordinary_way_are_compared_to_the_end(
    definitions: int, references: int
) -> None:
    def form(note: str) -> dict[str, Any]:
        members = [
            {f"m{other}": {"$ref": f"#/$defs/d{(number + other) % definitions}"} for other in range(1, references + 1)}
            for number in range(definitions)
        ]
        defs: dict[str, Any] = {f"d{number}": {"properties": each} for number, each in enumerate(members)}
        return {"$ref": "#/$defs/d0", "$defs": defs | {"d1": defs["d1"] | {"description": note}}}

    assert problems(form("a")) == []
    assert list(Comparison(form("a"), form("b"), is_promise=True).narrowings()) == []


def test_the_same_is_the_same_however_large_it_is() -> None:
    assert list(Comparison(ring(400), ring(400), is_promise=True).narrowings()) == []


def test_many_names_under_many_patterns_are_compared_in_time() -> None:
    old, new = patterned("a"), patterned("b")
    assert problems(old) == problems(new) == []
    start = time.process_time()
    assert list(Comparison(old, new).narrowings()) == []
    assert time.process_time() - start < 1
