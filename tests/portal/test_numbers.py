"""Numbers as people read them."""

import pytest

from execution.portal.numbers import share, short, took


@pytest.mark.parametrize(
    ("number", "said"),
    [
        (0, "0"),
        (999, "999"),
        (9_999, "9,999"),
        (12_345, "12.3k"),
        (100_000, "100k"),
        (1_000_000, "1M"),
        (2_500_000_000, "2.5G"),
    ],
)
def test_large_numbers_are_said_short(number: int, said: str) -> None:
    assert short(number) == said


@pytest.mark.parametrize(
    ("milliseconds", "said"),
    [
        (None, "–"),
        (0.5, "0.5 ms"),
        (42.04, "42 ms"),
        (999, "999 ms"),
        (1_400, "1.4 s"),
        (90_000, "1.5 min"),
        (7_200_000, "2 h"),
        (3 * 86_400_000, "3 d"),
    ],
)
def test_a_duration_is_said_in_the_unit_that_suits_it(milliseconds: float | None, said: str) -> None:
    assert took(milliseconds) == said


@pytest.mark.parametrize(
    ("part", "whole", "said"),
    [
        (0, 0, "–"),
        (0, 10, "0 %"),
        (10, 10, "100 %"),
        (1, 3, "33.3 %"),
        (1, 100_000, "< 0.1 %"),
        (99_999, 100_000, "> 99.9 %"),
    ],
)
def test_a_share_never_says_all_or_nothing_of_what_is_almost_so(part: int, whole: int, said: str) -> None:
    assert share(part, whole) == said
