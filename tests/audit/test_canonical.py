"""One value, one sequence of bytes; different values, different bytes."""

import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from audit.canonical import canonical

JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text('aé\n"\\😀', max_size=5),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(st.text(max_size=4).filter(lambda t: t.isprintable()), inner, max_size=4)
    ),
    max_leaves=12,
)


def same(left: Any, right: Any) -> bool:
    """Equal as JSON texts are: 1, 1.0 and true are three values, and so are 0.0 and -0.0."""
    if type(left) is not type(right):
        return False
    if isinstance(left, dict):
        return left.keys() == right.keys() and all(same(left[key], right[key]) for key in left)
    if isinstance(left, list):
        return len(left) == len(right) and all(map(same, left, right))
    if isinstance(left, float):
        return left == right and math.copysign(1, left) == math.copysign(1, right)
    return bool(left == right)


@given(JSON, JSON)
def test_bytes_are_equal_exactly_when_the_values_are(left: Any, right: Any) -> None:
    assert (canonical(left) == canonical(right)) == same(left, right)


def test_the_order_of_keys_does_not_matter() -> None:
    assert canonical({"b": 1, "a": {"d": 2, "c": 3}}) == b'{"a":{"c":3,"d":2},"b":1}'


def test_integers_of_any_size_keep_their_digits() -> None:
    assert (
        canonical({"n": 10**30, "m": -(2**70)}) == b'{"m":-1180591620717411303424,"n":1000000000000000000000000000000}'
    )


@pytest.mark.parametrize(
    "value", [math.nan, math.inf, [None, -math.inf], {"a": {"b": math.nan}}, "\ud800", {1: 2}, object(), {1, 2}, b"raw"]
)
def test_what_json_cannot_say_is_refused(value: Any) -> None:
    with pytest.raises(ValueError, match="Not a JSON value"):
        canonical(value)
