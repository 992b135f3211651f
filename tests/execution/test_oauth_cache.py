"""The cache of tokens: bounded, aging, and one exchange for however many ask at once."""

import threading
import time
from typing import Any

import pytest

from execution.errors import CallError, ErrorCode
from execution.oauth import Client, Token, TokenCache, unresolved
from execution.runtimes.cancel import Cancel


def client(name: str = "a") -> Client:
    return Client(
        token_url="https://t.example", client_id=name, scopes=(), secret_version="1", client_secret="hidden-x"
    )


def soon() -> float:
    return time.monotonic() + 5


def test_a_token_that_aged_is_fetched_again() -> None:
    now = 100.0
    cache = TokenCache(clock=lambda: now)
    tokens = iter([Token("one", 130.0), Token("two", 200.0)])
    assert cache.get(client(), lambda: next(tokens), deadline=soon()) == "one"
    now = 129.9
    assert cache.get(client(), lambda: next(tokens), deadline=soon()) == "one"
    now = 130.0
    assert cache.get(client(), lambda: next(tokens), deadline=soon()) == "two"


def test_the_cache_is_bounded_and_the_least_used_goes_first() -> None:
    cache = TokenCache(most=2)
    for name in ("a", "b", "a", "c"):
        cache.get(client(name), lambda name=name: Token(name, time.monotonic() + 60), deadline=soon())  # type: ignore[misc]
    assert len(cache) == 2
    with pytest.raises(ZeroDivisionError):
        cache.get(client("b"), lambda: Token(str(1 / 0), 0.0), deadline=soon())
    assert cache.get(client("a"), lambda: Token("new", 0.0), deadline=soon()) == "a"


def at_once(count: int, run: Any) -> list[Any]:
    """What `count` threads got that began together: a text, or the code of an error."""
    gate, got = threading.Barrier(count), []

    def one() -> None:
        gate.wait(5)
        try:
            got.append(run())
        except CallError as error:
            got.append(error.code)

    threads = [threading.Thread(target=one) for _ in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(10)
    return got


def test_many_who_ask_at_once_cause_one_exchange() -> None:
    cache, exchanges = TokenCache(), []

    def exchange() -> Token:
        exchanges.append(1)
        time.sleep(0.2)
        return Token("one", time.monotonic() + 60)

    assert at_once(20, lambda: cache.get(client(), exchange, deadline=soon())) == ["one"] * 20
    assert len(exchanges) == 1


def test_many_who_ask_at_once_share_one_failure_and_the_next_tries_anew() -> None:
    cache, exchanges = TokenCache(), []

    def exchange() -> Token:
        exchanges.append(1)
        time.sleep(0.2)
        raise unresolved("down", can_retry=True)

    assert at_once(8, lambda: cache.get(client(), exchange, deadline=soon())) == [ErrorCode.SECRET_UNRESOLVED] * 8
    assert len(exchanges) == 1
    assert cache.get(client(), lambda: Token("one", time.monotonic() + 60), deadline=soon()) == "one"


def test_who_waits_for_another_neither_outlasts_its_own_time_nor_its_own_cancellation() -> None:
    cache, is_free = TokenCache(), threading.Event()

    def exchange() -> Token:
        is_free.wait(5)
        return Token("one", time.monotonic() + 60)

    first = threading.Thread(target=lambda: cache.get(client(), exchange, deadline=soon()))
    first.start()
    while not cache._flights:
        time.sleep(0.001)
    cancel = Cancel()
    cancel.set()
    for deadline, given, code in (
        (time.monotonic() + 0.1, None, ErrorCode.SECRET_UNRESOLVED),
        (soon(), cancel, ErrorCode.CANCELED),
    ):
        began = time.monotonic()
        with pytest.raises(CallError) as caught:
            cache.get(client(), exchange, deadline=deadline, cancel=given)
        assert caught.value.code is code
        assert time.monotonic() - began < 1
    is_free.set()
    first.join(5)


def test_a_cancelled_call_does_not_cancel_those_who_waited_for_its_exchange() -> None:
    cache, begun = TokenCache(), threading.Event()

    def cancelled() -> Token:
        begun.set()
        time.sleep(0.2)
        raise CallError(ErrorCode.CANCELED, "cancelled", is_sent=False)

    def first() -> None:
        with pytest.raises(CallError):
            cache.get(client(), cancelled, deadline=soon())

    thread = threading.Thread(target=first)
    thread.start()
    begun.wait(5)
    assert cache.get(client(), lambda: Token("mine", time.monotonic() + 60), deadline=soon()) == "mine"
    thread.join(5)


def test_a_late_refusal_of_an_old_token_does_not_cost_the_new_one() -> None:
    cache = TokenCache()
    cache.get(client(), lambda: Token("new", time.monotonic() + 60), deadline=soon())
    assert cache.get(client(), lambda: Token("newer", 0.0), deadline=soon(), rejected="old") == "new"


def test_neither_client_nor_token_show_their_secret() -> None:
    assert "hidden-x" not in repr(client())
    assert "abcdef" not in repr(Token("abcdef", 1.0))
