"""A form made from a schema: every kind of parameter has a field or JSON, and what is typed becomes exact arguments."""

from typing import Any

import pytest
from django.http import QueryDict
from django.template.loader import render_to_string

from execution.portal.tryform import Field, every, fields_of
from execution.portal.tryvalues import blame, read, read_json

SCHEMA: dict[str, Any] = {
    "type": "object",
    "required": ["text", "count", "yes", "level"],
    "properties": {
        "text": {"type": "string"},
        "count": {"type": "integer", "minimum": 1},
        "part": {"type": "number", "default": 0.5},
        "yes": {"type": "boolean"},
        "level": {"enum": ["low", 3, None]},
        "words": {"type": "array", "items": {"type": "string"}},
        "sizes": {"type": "array", "items": {"type": "integer"}},
        "days": {"type": "array", "items": {"enum": ["Mon", "Tue"]}},
        "essay": {"type": "string", "maxLength": 4000},
        "pin": {"type": "string", "format": "password"},
        "address": {"$ref": "#/$defs/address"},
        "maybe": {"anyOf": [{"type": "string"}, {"type": "null"}]},
        "either": {"oneOf": [{"type": "string"}, {"type": "integer"}]},
        "rows": {"type": "array", "items": {"type": "object"}},
        "map": {"type": "object", "additionalProperties": True},
    },
    "$defs": {
        "address": {
            "type": "object",
            "required": ["street"],
            "properties": {"street": {"type": "string"}, "a/b~c": {"type": "number"}},
        }
    },
}
KINDS = {
    "text": "text",
    "count": "number",
    "part": "number",
    "yes": "choice",
    "level": "choice",
    "words": "lines",
    "sizes": "lines",
    "days": "several",
    "essay": "long",
    "pin": "secret",
    "address": "group",
    "maybe": "text",
    "either": "json",
    "rows": "json",
    "map": "json",
}


def drawn(schema: Any = SCHEMA) -> list[Field]:
    found = fields_of(schema)
    assert found is not None
    return found


def sent(fields: list[Field], **typed: Any) -> QueryDict:
    """A form in which these parameters were filled in, by the names the schema gives them."""
    names = {each.label: each.name for each in every(fields)}
    form = QueryDict(mutable=True)
    for label, value in typed.items():
        form.setlist(names[label], value if isinstance(value, list) else [value])
    return form


def test_each_parameter_gets_the_field_that_suits_it() -> None:
    fields = drawn()
    assert {each.label: each.kind for each in fields} == KINDS
    assert [each.text for each in fields if each.label == "part"] == ["0.5"]
    assert len({each.name for each in every(fields)}) == len(list(every(fields)))


def test_what_is_typed_becomes_exactly_that() -> None:
    fields = drawn()
    options = {each.label: {told: key for key, told, _ in each.options} for each in fields}
    form = sent(
        fields,
        text=" two  words ",
        count="3.0",
        part="1e2",
        yes=options["yes"]["false"],
        level=options["level"]["null"],
        words="a\r\nb c\r\n\r\n",
        sizes="1\n-2",
        days=[options["days"]["Mon"], options["days"]["Tue"]],
        pin="s3cret",
        street="Main St",
        either="7",
        rows='[{"a": 1}]',
    )
    assert read(fields, form) == {
        "text": " two  words ",
        "count": 3,
        "part": 100.0,
        "yes": False,
        "level": None,
        "words": ["a", "b c"],
        "sizes": [1, -2],
        "days": ["Mon", "Tue"],
        "pin": "s3cret",
        "address": {"street": "Main St"},
        "either": 7,
        "rows": [{"a": 1}],
    }
    assert not any(each.error for each in every(fields))


def test_bad_values_are_named_at_their_fields() -> None:
    fields = drawn()
    form = sent(fields, count="three", part="NaN", sizes="1\n2.5", level="99", rows="[1,", street="", words="a\0b")
    read(fields, form)
    wrong = {each.label: each.error for each in every(fields) if each.error}
    assert set(wrong) == {"text", "count", "part", "yes", "level", "sizes", "rows", "words"}
    assert wrong["count"] == "Must be a whole number, such as 3."
    assert wrong["text"].startswith("Is required.")


def test_a_group_that_is_left_alone_is_left_out_and_one_that_is_begun_is_not() -> None:
    fields = drawn()
    form = sent(fields, text="t", count="1", yes="0", level="0", **{"a/b~c": "2"})
    assert read(fields, form)["address"] == {"a/b~c": 2}
    assert [each.error[:12] for each in every(fields) if each.label == "street"] == ["Is required."]
    alone = drawn()
    assert "address" not in read(alone, sent(fields, text="t", count="1", yes="0", level="0", street=""))
    assert not any(each.error for each in every(alone))
    assert [each.is_demanded for each in every(alone) if each.label in ("text", "street")] == [True, False]


def test_a_violation_goes_to_the_innermost_field() -> None:
    fields = drawn()
    assert blame(fields, "/address/a~1b~0c", "Must be less")
    assert blame(fields, "/sizes/1", "Must be more")
    assert not blame(fields, "", "Is not valid")
    wrong = {each.label: each.error for each in every(fields) if each.error}
    assert wrong == {"a/b~c": "Must be less", "sizes": "Must be more"}


@pytest.mark.parametrize(
    "schema",
    [
        True,
        {"type": "object", "oneOf": [{"required": ["a"]}, {"required": ["b"]}]},
        {"type": "object", "properties": {f"p{number}": {"type": "string"} for number in range(500)}},
        {"$ref": "#/$defs/me", "$defs": {"me": {"$ref": "#/$defs/me"}}},
    ],
)
def test_what_no_form_can_say_is_left_to_json(schema: Any) -> None:
    assert fields_of(schema) is None


def test_a_schema_that_holds_itself_ends() -> None:
    node: dict[str, Any] = {"type": "object", "properties": {"next": {"$ref": "#/$defs/node"}}}
    fields = drawn({**node, "$defs": {"node": node}})
    assert [each.kind for each in every(fields)] == ["group"] * 4 + ["json"]


@pytest.mark.parametrize("text", ["", "[]", "{", '{"a": 1, "a": 2}', '{"a": NaN}', "[" * 5000])
def test_json_is_read_as_strictly_as_at_the_doors(text: str) -> None:
    with pytest.raises(ValueError, match=r"[A-Z].*"):
        read_json(text)


def test_hostile_schemas_are_drawn_as_text() -> None:
    nasty = '"><script>alert(1)</script>\u202e'
    schema = {
        "type": "object",
        "properties": {
            nasty: {"type": "string", "description": nasty, "pattern": nasty},
            "choice": {"enum": [nasty]},
            "group": {"type": "object", "properties": {nasty: {"type": "array", "items": {"enum": [nasty]}}}},
        },
    }
    for each in drawn(schema):
        each.error = nasty
        page = render_to_string("portal/try_field.html", {"field": each})
        assert "<script" not in page
        assert "\u202e" not in page


def test_a_secret_never_goes_back_into_the_page() -> None:
    (field,) = drawn(
        {"type": "object", "properties": {"pin": {"type": "string", "writeOnly": True, "default": "x1y2"}}}
    )
    page = render_to_string("portal/try_field.html", {"field": field})
    assert 'type="password"' in page
    assert 'value="x1y2' not in page
