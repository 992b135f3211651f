"""Domain: the values that are left for one part of an expression after everything that is demanded of it."""

import json
import math
from datetime import datetime, timedelta
from typing import Any

from policy.cel.alternatives import NUMBERS, Bound
from policy.cel.shapes import Shape

_MAX_LISTED = 8
NEGATED = {"==": "!=", "!=": "==", "<": ">=", ">=": "<", ">": "<=", "<=": ">"}
FLIPPED = {"==": "==", "!=": "!=", "<": ">", ">": "<", "<=": ">=", ">=": "<="}


class Domain:
    """Starts with what a shape allows and shrinks with each demand; empty once nothing is left."""

    def __init__(self, shape: Shape, *, low: int | None = None, high: int | None = None) -> None:
        self._values = shape.values
        self._excluded: list[Any] = []
        self._is_whole = shape.kinds == {"int"}
        self._shape = shape
        bounds = shape.bounds if shape.kinds <= NUMBERS else (None, None)
        self._low = bounds[0] or (None if low is None else Bound(low, False))
        self._high = bounds[1] or (None if high is None else Bound(high, False))
        self._lows = [self._low] if self._low else []
        self._highs = [self._high] if self._high else []

    @property
    def nature(self) -> str:
        """What the value can be, before anything is demanded of it."""
        if (values := self._shape.values) is not None:
            listed = ", ".join(json.dumps(value, ensure_ascii=False) for value in values[:_MAX_LISTED])
            return f"one of {listed}{', …' if len(values) > _MAX_LISTED else ''}"
        limits = [f"{word} {bound.value}" for word, bound in (("from", self._low), ("to", self._high)) if bound]
        return " ".join([self._shape.words, *limits])

    def demand(self, operator: str, value: Any) -> None:
        """From now on only values for which the comparison holds."""
        match operator:
            case "==":
                self.choose([value])
            case "!=":
                self._excluded.append(value)
            case "<" | "<=":
                self._highs.append(Bound(value, operator == "<"))
            case _:
                self._lows.append(Bound(value, operator == ">"))

    def choose(self, values: list[Any]) -> None:
        """From now on only one of these."""
        if self._values is None:
            self._values = values
        else:
            self._values = [one for one in self._values if any(same(one, other) for other in values)]

    def exclude(self, values: list[Any]) -> None:
        self._excluded += values

    @property
    def is_empty(self) -> bool:
        if self._values is not None:
            return not any(self._admits(value) for value in self._values)
        return not all(self._leave_room(low, high) for low in self._lows for high in self._highs)

    def _admits(self, value: Any) -> bool:
        if any(same(value, other) for other in self._excluded):
            return False
        if self._is_whole and isinstance(value, float) and not value.is_integer():
            return False
        above = all(_is_before(low.value, value, or_equal=not low.is_open) for low in self._lows)
        return above and all(_is_before(value, high.value, or_equal=not high.is_open) for high in self._highs)

    def _leave_room(self, low: Bound, high: Bound) -> bool:
        if self._is_whole and _are_numbers(low.value, high.value) and math.isfinite(low.value + high.value):
            return _least_whole(low) <= _greatest_whole(high)
        return _is_before(low.value, high.value, or_equal=not low.is_open and not high.is_open)


def same(one: Any, other: Any) -> bool:
    """Equality as the engine has it: true is not 1, but 1 is 1.0."""
    return isinstance(one, bool) == isinstance(other, bool) and bool(one == other)


def _is_before(one: Any, other: Any, *, or_equal: bool) -> bool:
    """Whether a value comes before another; values of unlike kinds never do."""
    alike = isinstance(one, bool) == isinstance(other, bool)
    if not alike or not (_are_numbers(one, other) or _are_ordered(one, other)):
        return False
    return bool(one <= other) if or_equal else bool(one < other)


def _are_numbers(one: Any, other: Any) -> bool:
    return isinstance(one, int | float) and isinstance(other, int | float)


def _are_ordered(one: Any, other: Any) -> bool:
    return any(isinstance(one, kind) and isinstance(other, kind) for kind in (str, datetime, timedelta))


def _least_whole(low: Bound) -> int:
    return int(math.floor(low.value) + 1 if low.is_open else math.ceil(low.value))


def _greatest_whole(high: Bound) -> int:
    return int(math.ceil(high.value) - 1 if high.is_open else math.floor(high.value))
