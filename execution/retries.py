"""Which failures deserve another attempt, and when."""

from execution.claim import Claim
from execution.errors import Failure
from registry.toolspec import RetrySpec

REPEATABLE = {"read", "idempotent", "keyed"}


def next_delay(claim: Claim, failure: Failure, *, is_sent: bool) -> float | None:
    """Seconds until the next attempt, or None if there must not be one."""
    retry = claim.tool.runtime.retry
    if not is_retryable(failure) or claim.fence >= retry.max_attempts:
        return None
    if is_sent and claim.tool.idempotency not in REPEATABLE:
        return None  # it may have had its effect: at most once
    asked = (failure.retry_after_ms or 0) / 1000
    return max(backoff(retry, claim.fence, seed=claim.call_id), min(asked, retry.max_backoff))


def is_retryable(failure: Failure) -> bool:
    return failure.can_retry or (failure.code.value.retryable and not failure.is_final)


def backoff(retry: RetrySpec, attempt: int, *, seed: str) -> float:
    """Doubling from `backoff` up to `max_backoff` after the attempt-th failure, spread by the jitter."""
    delay = min(retry.backoff * float(2 ** min(attempt - 1, 10)), retry.max_backoff)
    if delay <= 0:
        return 0.0
    spread = fnv1a(f"{seed}:{attempt}") % 10_000 / 10_000
    match retry.jitter:
        case "full":
            delay *= spread
        case "equal":
            delay = delay / 2 + delay / 2 * spread
    return max(delay, 0.001)


def fnv1a(text: str) -> int:
    """FNV-1a, 32 bits: the same spread for the same call on every machine."""
    value = 0x811C9DC5
    for byte in text.encode():
        value = (value ^ byte) * 0x01000193 & 0xFFFFFFFF
    return value
