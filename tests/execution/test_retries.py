"""The delays between attempts."""

import pytest

from execution.retries import backoff, fnv1a
from registry.toolspec import RetrySpec


@pytest.mark.parametrize(
    ("tool", "spread"),
    [
        ("web_search", [0.6923, 0.4542, 0.2161, 0.9780, 0.7399]),
        ("flaky", [0.2695, 0.0314, 0.7933, 0.4600, 0.2219]),
    ],
)
def test_the_spread_follows_the_contracts_vectors(tool: str, spread: list[float]) -> None:
    assert [fnv1a(f"{tool}:{attempt}") % 10_000 / 10_000 for attempt in range(1, 6)] == spread


def test_the_delay_doubles_up_to_its_bound() -> None:
    retry = RetrySpec(max_attempts=9, backoff=1.0, max_backoff=5.0, jitter="none")
    assert [backoff(retry, attempt, seed="x") for attempt in range(1, 6)] == [1, 2, 4, 5, 5]


def test_no_backoff_means_no_delay() -> None:
    retry = RetrySpec(max_attempts=9, backoff=0.0, max_backoff=5.0, jitter="full")
    assert backoff(retry, 3, seed="x") == 0.0


def test_jitter_spreads_within_its_range() -> None:
    full = RetrySpec(max_attempts=9, backoff=1.0, max_backoff=8.0, jitter="full")
    equal = RetrySpec(max_attempts=9, backoff=1.0, max_backoff=8.0, jitter="equal")
    for attempt in range(1, 8):
        plain = min(2 ** (attempt - 1), 8.0)
        assert 0 < backoff(full, attempt, seed="seed") <= plain
        assert plain / 2 <= backoff(equal, attempt, seed="seed") <= plain
