"""A reference means the same to all who follow it; what the validator follows is the measure."""

import time
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from audit.redaction import Redactor
from audit.references import followed
from execution.protocols.inlining import without_refs
from registry.schemachange import Comparison
from registry.schemacheck import problems
from registry.schemaparts import validator
from registry.schemas import compiled

# Names that turn into one another when a reference is decoded never, once or twice, or taken apart too early.
NAMES = [
    "A",
    "%41",
    "%2541",
    "a/b",
    "a~1b",
    "a~b",
    "~1",
    "~01",
    "",
    " ",
    "x y",
    "x+y",
    "%",
    "é",
    "\ufffd",
    "0",
    "00",
    "a",
]
SHELF = {name: {"const": f"this is {name}"} for name in NAMES}
SPELLINGS = [
    *("#/$defs/A", "#/$defs/%41", "#/$defs/%2541", "#/$defs/%252541", "#/%24defs/A", "#/$defs%2FA", "#%2F$defs/A"),
    *("#/$defs/a~1b", "#/$defs/a/b", "#/$defs/a%2Fb", "#/$defs/a%7E1b", "#/$defs/a~01b", "#/$defs/a~b", "#/$defs/a~0b"),
    *("#/$defs/~01", "#/$defs/~1", "#/$defs/~001", "#/$defs/~", "#/$defs/", "#/$defs//", "#/$defs/A/", "#/", "#//"),
    *(
        "#/$defs/x y",
        "#/$defs/x%20y",
        "#/$defs/x+y",
        "#/$defs/x%2By",
        "#/$defs/%20",
        "#/$defs/ ",
        "#/$defs/%",
        "#/$defs/%25",
    ),
    *("#/$defs/é", "#/$defs/%C3%A9", "#/$defs/%c3%a9", "#/$defs/%E9", "#/$defs/%FF", "#/$defs/%zz", "#/$defs/%4"),
    *("#/prefixItems/0", "#/prefixItems/00", "#/prefixItems/+0", "#/prefixItems/-1", "#/prefixItems/1", "#/$defs/0"),
    *("#/prefixItems/%30", "#/prefixItems/" + "9" * 5_000, "#/prefixItems/" + "0" * 5_000, "#/$defs/00"),
    *("", "#A", "#%2F", "?#/$defs/A", "#/$defs/A#", "#/$defs/A?x", "#/$defs/A\n", " #/$defs/A", "./#/$defs/A", "##"),
]


def judged_by(reference: str) -> dict[str, Any]:
    return {"properties": {"x": {"$ref": reference}}, "prefixItems": [{"const": "this is first"}], "$defs": SHELF}


def is_read_alike(reference: str) -> bool:
    """Whether a schema with this reference is refused, or what we find is what the validator goes by."""
    schema = judged_by(reference)
    if problems(schema):
        return True
    found = followed(schema, reference)
    values = [part["const"] for part in (*SHELF.values(), *schema["prefixItems"])]
    judge = validator(schema)
    return all(judge.is_valid({"x": value}) == ("const" not in found or found["const"] == value) for value in values)


@pytest.mark.parametrize("reference", SPELLINGS)
def test_a_reference_is_refused_or_read_as_the_validator_reads_it(reference: str) -> None:
    assert is_read_alike(reference)


@settings(max_examples=500, deadline=None)
@given(
    st.lists(st.sampled_from([*"#/~%012547EAaxbyé +?$", "$defs/", "#/$defs/", "%25", "%2F", "%7E", "%41"]), max_size=8)
)
def test_whatever_a_reference_is_made_of_it_is_read_alike(parts: list[str]) -> None:
    assert is_read_alike("".join(parts))
    assert is_read_alike("#/$defs/" + "".join(parts))


def test_an_encoded_name_is_welcome_where_only_it_can_be_said() -> None:
    assert problems(judged_by("#/$defs/%C3%A9")) == problems(judged_by("#/$defs/x%20y")) == []


@pytest.mark.parametrize("beside", [{"$anchor": "A"}, {"$comment": "#/$defs/A"}, {"default": {"$id": "http://x/"}}])
def test_nothing_beside_a_definition_changes_where_references_lead(beside: dict[str, Any]) -> None:
    schema = {"$ref": "#/$defs/q", "$defs": {"q": {**beside, "$ref": "#/$defs/A"}, "A": {"const": 1}}}
    assert problems(schema) == []
    assert (validator(schema).is_valid(1), validator(schema).is_valid(2)) == (True, False)


@pytest.mark.parametrize("place", ["x-shelf", "default", "examples", "const", "components"])
def test_an_address_inside_data_does_not_change_where_references_lead(place: str) -> None:
    data: Any = {"$id": "http://x/", "q": {"$ref": "#/$defs/z"}, "$defs": {"z": False}}
    schema = {
        "properties": {"x": {"$ref": f"#/$defs/d/{place}/0/q"}},
        "$defs": {"z": {"type": "integer"}, "d": {place: [data]}},
    }
    if not problems(schema):
        assert (validator(schema).is_valid({"x": 1}), validator(schema).is_valid({"x": ""})) == (True, False)


def hidden_doubling(levels: int) -> dict[str, Any]:
    """Definitions that double at each level, with empty ones that bear their names as they are spelled."""
    real: dict[str, Any] = {
        chr(65 + level): {"allOf": [{"$ref": f"#/$defs/%{66 + level:X}"}] * 2} for level in range(levels)
    }
    decoys: dict[str, Any] = {f"%{65 + level:X}": {} for level in range(levels + 1)}
    return {"$ref": "#/$defs/%41", "$defs": {**decoys, **real, chr(65 + levels): {"type": "string"}}}


def test_doubling_behind_encoded_names_is_refused_at_save() -> None:
    start = time.process_time()
    assert "too many" in " ".join(map(str, problems(hidden_doubling(25))))
    assert time.process_time() - start < 1


SECRETIVE: dict[str, Any] = {
    "type": "object",
    "properties": {"x": {"$ref": "#/$defs/%41"}},
    "$defs": {"%41": {}, "A": {"type": "string", "writeOnly": True, "maxLength": 20}},
}


def test_a_mark_behind_an_encoded_name_masks() -> None:
    shown = Redactor().for_people({"x": "hunter2"}, SECRETIVE)
    assert shown["x"].startswith("[REDACTED:schema:")


def test_an_encoded_name_is_explained_compared_and_inlined_like_any_other() -> None:
    (violation,) = compiled(SECRETIVE).violations({"x": 5})
    assert (violation.path, violation.message) == ("/x", "Must be a string")
    narrower = {**SECRETIVE, "$defs": {"%41": {}, "A": {"type": "string", "writeOnly": True, "maxLength": 5}}}
    assert list(Comparison(SECRETIVE, narrower).narrowings()) == [("x", "has a maxLength of 5, was 20")]
    assert without_refs(SECRETIVE)["properties"]["x"]["maxLength"] == 20
