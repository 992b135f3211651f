"""JSON arguments become what the hints promise; what does not fit is named and never shown."""

from dataclasses import dataclass, field
from datetime import UTC, date, datetime, time
from enum import Enum
from typing import Annotated, Any, Literal, NotRequired, TypedDict
from uuid import UUID

import pytest

from placet import InvalidInputError, ToolContext
from placet.conversion import Mismatch, Plan, converter


class Color(Enum):
    RED = "red"
    ONE = 1


@dataclass(frozen=True)
class Point:
    x: float
    y: float = 0.0
    seen: list[date] = field(default_factory=list)

    def __post_init__(self) -> None:
        if self.x < 0:
            raise ValueError(f"secret {self.x}")


class Order(TypedDict):
    at: datetime
    where: NotRequired[Point]


ID = "12345678-1234-5678-1234-567812345678"
CONVERTED: list[tuple[Any, Any, Any]] = [
    (str, "a", "a"),
    (int, 3, 3),
    (int, 3.0, 3),
    (float, 3, 3),
    (float, 3.5, 3.5),
    (bool, True, True),
    (None, None, None),
    (bytes, "aGk=", b"hi"),
    (Any, {"x": [1]}, {"x": [1]}),
    (datetime, "2025-01-02T03:04:05Z", datetime(2025, 1, 2, 3, 4, 5, tzinfo=UTC)),
    (date, "2025-01-02", date(2025, 1, 2)),
    (time, "03:04", time(3, 4)),
    (UUID, ID, UUID(ID)),
    (Color, "red", Color.RED),
    (Color, 1, Color.ONE),
    (Literal["a", Color.RED], "red", Color.RED),
    (int | None, None, None),
    (date | str, "tomorrow", "tomorrow"),
    (list[date], ["2025-01-02"], [date(2025, 1, 2)]),
    (set[int], [1, 1], {1}),
    (tuple[int, str], [1, "a"], (1, "a")),
    (tuple[int, ...], [1, 2], (1, 2)),
    (dict[str, Color], {"a": "red"}, {"a": Color.RED}),
    (Annotated[Point, "A place."], {"x": 1}, Point(1)),
    (Point, {"x": 1, "seen": ["2025-01-02"]}, Point(1, seen=[date(2025, 1, 2)])),
    (Order, {"at": "2025-01-02", "where": {"x": 1}}, {"at": datetime(2025, 1, 2), "where": Point(1)}),
]


@pytest.mark.parametrize(("hint", "given", "expected"), CONVERTED)
def test_a_json_value_becomes_the_promised_value(hint: Any, given: Any, expected: Any) -> None:
    converted = converter(hint)(given)
    assert converted == expected
    assert type(converted) is type(expected)


REFUSED: list[tuple[Any, Any, str]] = [
    (str, 1, "Must be a string"),
    (int, True, "Must be an integer"),
    (int, 1.5, "Must be an integer"),
    (float, "infinity", "Must be a number"),
    (bool, 1, "Must be a boolean"),
    (bytes, "%%", "Must be base64"),
    (date, "sesame", "Must be a date"),
    (UUID, "sesame", "Must be a uuid"),
    (Color, True, "Must be one of the listed values"),
    (Color, ["red"], "Must be one of the listed values"),
    (int | None, "sesame", "Must be an integer or Must be null"),
    (list[int], {"0": 1}, "Must be an array"),
    (list[int], [1, "sesame"], "1: Must be an integer"),
    (tuple[int, str], [1], "Must be an array of 2 items"),
    (set[Any], [["sesame"]], "Must be an array of simple values"),
    (Point, {"y": 1}, "Must have the key 'x'"),
    (Point, {"x": 1, "z": "sesame"}, "Must not have the key 'z'"),
    (Point, {"x": -1}, "Must make a valid Point (ValueError)"),
    (Order, {"at": "2025-01-02", "where": {"x": "sesame"}}, "where: x: Must be a number"),
]


@pytest.mark.parametrize(("hint", "given", "reason"), REFUSED)
def test_a_value_that_does_not_fit_is_refused_without_being_shown(hint: Any, given: Any, reason: str) -> None:
    with pytest.raises(Mismatch) as refusal:
        converter(hint)(given)
    assert str(refusal.value) == reason
    assert "sesame" not in reason


def test_the_plan_fills_in_the_context_and_names_a_bad_parameter() -> None:
    def ring(bell: int, context: ToolContext) -> None: ...

    context = ToolContext()
    assert Plan(ring).keywords({"bell": 1}, context) == {"bell": 1, "context": context}
    with pytest.raises(InvalidInputError) as refusal:
        Plan(ring).keywords({"bell": "x"}, context)
    assert refusal.value.developer_message == "bell: Must be an integer"
    for name in ("context", "other"):  # a caller cannot bring its own context
        with pytest.raises(InvalidInputError):
            Plan(ring).keywords({"bell": 1, name: {}}, context)


def test_a_plain_function_without_hints_takes_what_it_is_given() -> None:
    def old(a, **more):  # type: ignore[no-untyped-def]
        return a, more

    assert Plan(old).keywords({"a": [1], "b": 2}, ToolContext()) == {"a": [1], "b": 2}
