"""Whatever a tool returns becomes JSON, content, or a refusal that says where."""

from dataclasses import dataclass
from datetime import UTC, date, datetime
from enum import Enum
from typing import Any
from uuid import UUID

import pytest

from placet import Audio, Image, Resource, ResourceLink, Text
from placet.answers import BadResult, answer, to_json


class Color(Enum):
    RED = "red"


@dataclass
class Point:
    x: float
    at: datetime


class Celsius(float): ...


MOMENT = datetime(2025, 1, 2, 3, 4, 5, tzinfo=UTC)
ID = UUID("12345678-1234-5678-1234-567812345678")


@pytest.mark.parametrize(
    ("returned", "expected"),
    [
        (None, None),
        (3, 3),
        (2**64 - 1, 2**64 - 1),
        ("ä", "ä"),
        ((1, 2), [1, 2]),
        ({"b", "a"}, ["a", "b"]),
        (b"hi", "aGk="),
        (Color.RED, "red"),
        ({Color.RED: ID}, {"red": str(ID)}),
        (date(2025, 1, 2), "2025-01-02"),
        (Celsius(1.5), 1.5),
        ([Point(1.0, MOMENT)], [{"x": 1.0, "at": "2025-01-02T03:04:05+00:00"}]),
    ],
)
def test_a_result_has_its_json_form(returned: Any, expected: Any) -> None:
    assert answer(returned) == {"kind": "value", "value": expected}


LOOP: list[Any] = []
LOOP.append(LOOP)


@pytest.mark.parametrize(
    ("returned", "reason"),
    [
        (float("nan"), "the result is not a finite number"),
        ({"a": [1, float("inf")]}, "the result at /a/1 is not a finite number"),
        (2**64, "the result is an integer of more than 64 bits"),
        ("\ud800", "the result is a text with lone surrogates"),
        ({"a\x00": 1}, "the result is a text with a NUL character"),
        (object(), "the result is an object, which has no JSON form"),
        ({1: 2}, "a key of the result is an int, not a text"),
        (LOOP, "the result is nested deeper than 64 levels, or contains itself"),
        ([Text("a"), 1], "the list mixes content with other values"),
        ({"a": Text("a")}, "the result at /a is a Text, which has no JSON form"),
        (Image(data="text", mime_type="image/png"), "content is incomplete: data must be bytes, not str"),  # type: ignore[arg-type]
    ],
)
def test_what_json_cannot_carry_is_refused_with_its_place(returned: Any, reason: str) -> None:
    with pytest.raises(BadResult) as refusal:
        answer(returned)
    assert str(refusal.value) == reason


def test_content_becomes_mcp_blocks() -> None:
    returned = [
        Text("hello"),
        Image(b"\x89", "image/png"),
        Audio(b"\x01", "audio/wav"),
        ResourceLink("file:///a", "a", mime_type="text/plain"),
        Resource("file:///b", "text/plain", text="b"),
        Resource("file:///c", blob=b"c"),
    ]
    assert answer(returned)["content"] == [
        {"type": "text", "text": "hello"},
        {"type": "image", "data": "iQ==", "mimeType": "image/png"},
        {"type": "audio", "data": "AQ==", "mimeType": "audio/wav"},
        {"type": "resource_link", "uri": "file:///a", "name": "a", "mimeType": "text/plain"},
        {"type": "resource", "resource": {"uri": "file:///b", "mimeType": "text/plain", "text": "b"}},
        {"type": "resource", "resource": {"uri": "file:///c", "blob": "Yw=="}},
    ]
    assert answer(Text("x")) == {"kind": "content", "content": [{"type": "text", "text": "x"}]}


def test_an_empty_list_is_content_only_if_content_was_promised() -> None:
    assert answer([]) == {"kind": "value", "value": []}
    assert answer([], promises_content=True) == {"kind": "content", "content": []}


def test_a_resource_holds_text_or_blob_and_not_both() -> None:
    for wrong in ({}, {"text": "a", "blob": b"a"}):
        with pytest.raises(ValueError, match="either text or blob"):
            Resource("file:///a", **wrong)  # type: ignore[arg-type]


def test_a_set_is_told_in_the_same_order_every_time() -> None:
    assert to_json({f"{number}" for number in range(50)}) == sorted(f"{number}" for number in range(50))
