"""Type hints become the JSON Schema an author would have written, or a refusal that says why not."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime, time
from enum import Enum, Flag, IntEnum
from typing import Annotated, Any, Literal, NewType, NotRequired, Optional, Required, TypedDict, Union
from uuid import UUID

import pytest
from jsonschema_rs import meta

from placet import Audio, Image, Resource, ResourceLink, Text, ToolContext, ToolkitError
from placet.schema import input_schema, output_schema, schema_of


class Color(Enum):
    RED = "red"
    BLUE = "blue"


class Size(IntEnum):
    SMALL = 1
    LARGE = 2


class Mixed(Enum):
    YES = True
    MANY = 2
    NONE = None


class Bits(Flag):
    ONE = 1


@dataclass
class Point:
    x: float
    y: Annotated[float, "How high."] = 0.5
    tags: list[str] = field(default_factory=list)
    distance: float = field(init=False, default=0.0)


@dataclass
class Line:
    start: Point
    color: Color = Color.RED


class Order(TypedDict):
    id: int
    note: NotRequired[str]


class Loose(TypedDict, total=False):
    id: Required[int]
    note: Annotated[str, "A note."]


@dataclass
class Tree:
    children: "list[Tree]"


UserId = NewType("UserId", str)

POINT = {
    "type": "object",
    "properties": {
        "x": {"type": "number"},
        "y": {"type": "number", "description": "How high.", "default": 0.5},
        "tags": {"type": "array", "items": {"type": "string"}},
    },
    "required": ["x"],
    "additionalProperties": False,
}

HINTS: list[tuple[Any, dict[str, Any]]] = [
    (str, {"type": "string"}),
    (int, {"type": "integer"}),
    (float, {"type": "number"}),
    (bool, {"type": "boolean"}),
    (None, {"type": "null"}),
    (bytes, {"type": "string", "contentEncoding": "base64"}),
    (Any, {}),
    (datetime, {"type": "string", "format": "date-time"}),
    (date, {"type": "string", "format": "date"}),
    (time, {"type": "string", "format": "time"}),
    (UUID, {"type": "string", "format": "uuid"}),
    (UserId, {"type": "string"}),
    (Optional[int], {"anyOf": [{"type": "integer"}, {"type": "null"}]}),  # noqa: UP045
    (str | None, {"anyOf": [{"type": "string"}, {"type": "null"}]}),
    (Union[int, str], {"anyOf": [{"type": "integer"}, {"type": "string"}]}),  # noqa: UP007
    (Literal["a", "b"], {"type": "string", "enum": ["a", "b"]}),
    (Literal["a", 1, None], {"enum": ["a", 1, None]}),
    (Literal[Color.RED], {"type": "string", "enum": ["red"]}),
    (Color, {"type": "string", "enum": ["red", "blue"]}),
    (Size, {"type": "integer", "enum": [1, 2]}),
    (Mixed, {"enum": [True, 2, None]}),
    (list, {"type": "array"}),
    (list[int], {"type": "array", "items": {"type": "integer"}}),
    (Sequence[str], {"type": "array", "items": {"type": "string"}}),
    (set[str], {"type": "array", "items": {"type": "string"}, "uniqueItems": True}),
    (dict, {"type": "object"}),
    (dict[str, Any], {"type": "object"}),
    (dict[str, int], {"type": "object", "additionalProperties": {"type": "integer"}}),
    (
        Mapping[str, list[int]],
        {"type": "object", "additionalProperties": {"type": "array", "items": {"type": "integer"}}},
    ),
    (tuple[int, ...], {"type": "array", "items": {"type": "integer"}}),
    (
        tuple[int, str],
        {
            "type": "array",
            "prefixItems": [{"type": "integer"}, {"type": "string"}],
            "items": False,
            "minItems": 2,
            "maxItems": 2,
        },
    ),
    (Annotated[int, "How many."], {"type": "integer", "description": "How many."}),
    (Annotated[int, "How many.", {"minimum": 1}], {"type": "integer", "description": "How many.", "minimum": 1}),
    (Point, POINT),
    (
        Line,
        {
            "type": "object",
            "properties": {"start": POINT, "color": {"type": "string", "enum": ["red", "blue"], "default": "red"}},
            "required": ["start"],
            "additionalProperties": False,
        },
    ),
    (
        Order,
        {
            "type": "object",
            "properties": {"id": {"type": "integer"}, "note": {"type": "string"}},
            "required": ["id"],
            "additionalProperties": False,
        },
    ),
    (
        Loose,
        {
            "type": "object",
            "properties": {"id": {"type": "integer"}, "note": {"type": "string", "description": "A note."}},
            "required": ["id"],
            "additionalProperties": False,
        },
    ),
]


@pytest.mark.parametrize(("hint", "expected"), HINTS, ids=[str(hint) for hint, _ in HINTS])
def test_every_kind_of_hint_has_its_schema(hint: Any, expected: dict[str, Any]) -> None:
    schema = schema_of(hint, "here")
    assert schema == expected
    meta.validate(schema)


REFUSED: list[tuple[Any, str]] = [
    (complex, "here: the type complex has no JSON form"),
    (Callable[[], None], "has no JSON form"),
    (dict[int, str], "the keys of a JSON object are texts, not int"),
    (Bits, "flags have no JSON form"),
    (Literal[b"x"], "b'x' cannot be a choice"),
    (list[complex], "here, items: the type complex has no JSON form"),
    (Tree, "the type contains itself (Tree -> list[test_schema.Tree] -> Tree)"),
]


@pytest.mark.parametrize(("hint", "reason"), REFUSED, ids=[str(hint) for hint, _ in REFUSED])
def test_a_hint_without_a_json_form_is_refused_with_its_place(hint: Any, reason: str) -> None:
    with pytest.raises(ToolkitError) as refusal:
        schema_of(hint, "here")
    message = str(refusal.value).replace(f"{__name__}.", "test_schema.")
    assert reason in message


def test_a_type_may_appear_twice_side_by_side() -> None:
    def move(start: Point, end: Point) -> None: ...

    assert input_schema(move)["properties"] == {"start": POINT, "end": POINT}


def test_the_input_is_closed_and_knows_what_is_required() -> None:
    def add(a: float, b: float, c: float = 0, *, d: str | None = None) -> float:
        return a + b + c

    assert input_schema(add) == {
        "type": "object",
        "properties": {
            "a": {"type": "number"},
            "b": {"type": "number"},
            "c": {"type": "number", "default": 0},
            "d": {"anyOf": [{"type": "string"}, {"type": "null"}], "default": None},
        },
        "required": ["a", "b"],
        "additionalProperties": False,
    }


def test_the_docstring_describes_what_annotated_does_not() -> None:
    def send(to: str, body: Annotated[str, "From the hint."], urgent: bool = False) -> None:
        """Sends a mail.

        Args:
            to (str): Who gets it,
                in one word.
            body: From the docstring.
            urgent: Whether it hurries.

        Returns:
            to: nothing at all.
        """

    told = {name: schema["description"] for name, schema in input_schema(send)["properties"].items()}
    assert told == {"to": "Who gets it, in one word.", "body": "From the hint.", "urgent": "Whether it hurries."}


def test_the_context_is_no_parameter() -> None:
    def one(context: ToolContext, name: str) -> None: ...
    def other(name: str, context: ToolContext | None = None) -> None: ...

    assert list(input_schema(one)["properties"]) == list(input_schema(other)["properties"]) == ["name"]


def test_a_parameter_nobody_can_name_is_refused() -> None:
    def many(*numbers: int) -> None: ...
    def anything(**more: int) -> None: ...
    def first(number: int, /) -> None: ...

    for function, name in ((many, "numbers"), (anything, "more"), (first, "number")):
        with pytest.raises(ToolkitError, match=f"parameter '{name}' cannot be given by name"):
            input_schema(function)


def test_a_parameter_without_a_hint_is_refused() -> None:
    def add(a, b: int) -> int:  # type: ignore[no-untyped-def]
        return b

    with pytest.raises(ToolkitError, match="parameter 'a' has no type hint"):
        input_schema(add)


def test_a_hint_that_names_nothing_is_refused() -> None:
    def add(a: "Nonesuch") -> None: ...  # type: ignore[name-defined]  # noqa: F821

    with pytest.raises(ToolkitError, match="a type hint cannot be read: NameError: name 'Nonesuch' is not defined"):
        input_schema(add)


def test_none_as_a_default_must_be_said_in_the_type() -> None:
    def greet(name: str = None) -> None: ...  # type: ignore[assignment]  # noqa: RUF013

    with pytest.raises(ToolkitError, match="parameter 'name' is None by default"):
        input_schema(greet)


def test_the_output_is_absent_nothing_or_a_schema() -> None:
    def silent(): ...  # type: ignore[no-untyped-def]
    def nothing() -> None: ...
    def anything() -> Any: ...
    def number() -> float: ...  # type: ignore[empty-body]
    def point() -> Point: ...  # type: ignore[empty-body]

    assert output_schema(silent) == (False, None)
    assert output_schema(anything) == (False, None)
    assert output_schema(nothing) == (True, None)
    assert output_schema(number) == (True, {"type": "number"})
    schema = output_schema(point)[1]
    assert schema is not None
    assert schema["required"] == ["x", "y", "tags", "distance"]  # all of them come back


@pytest.mark.parametrize(
    "hint", [Text, Image, Audio, Resource, ResourceLink, list[Text], list[Text | Image], Text | None, tuple[Text, ...]]
)
def test_content_promises_no_value(hint: Any) -> None:
    def draw(): ...  # type: ignore[no-untyped-def]

    draw.__annotations__["return"] = hint
    assert output_schema(draw) == (False, None)
