"""The delays between attempts."""

from dataclasses import replace
from types import SimpleNamespace

import pytest

from execution.claim import Claim
from execution.errors import ErrorCode, Failure
from execution.retries import backoff, fnv1a, next_delay
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


def test_24_two_calls_that_fail_together_do_not_come_again_together() -> None:
    """The spread hangs on the call's id, and is the same for one call wherever it is worked out."""
    failure = Failure(code=ErrorCode.TIMEOUT, message="late")
    delays = {id: next_delay(claimed(id), failure, is_sent=True) for id in ("call-1", "call-2", "call-3")}
    assert len(set(delays.values())) == 3
    assert next_delay(claimed("call-1"), failure, is_sent=True) == delays["call-1"]


def test_22_after_the_last_attempt_and_for_a_final_failure_there_is_no_other() -> None:
    failure = Failure(code=ErrorCode.TIMEOUT, message="late")
    assert next_delay(claimed("c", fence=3), failure, is_sent=True) is None
    assert next_delay(claimed("c"), replace(failure, is_final=True), is_sent=True) is None
    assert next_delay(claimed("c"), Failure(code=ErrorCode.CANCELED, message="stop"), is_sent=False) is None


def claimed(call_id: str, fence: int = 1) -> Claim:
    """As much of a claim as a delay hangs on."""
    retry = RetrySpec(max_attempts=3, backoff=1.0, max_backoff=8.0, jitter="full")
    tool = SimpleNamespace(runtime=SimpleNamespace(retry=retry), idempotency="read")
    return SimpleNamespace(call_id=call_id, fence=fence, tool=tool)  # type: ignore[return-value]
