"""Blocking: `tasks/result` waits for a task's end, which may hold a thread, but never long and never many."""

import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from django.conf import settings

from execution import bell, calls, stopping
from execution.models import Call
from execution.protocols.mcp.exchange import Exchange
from execution.protocols.mcp.rpcerrors import UNAVAILABLE, RpcError
from execution.protocols.mcp.taskstatus import is_final, legacy_status, task

PATIENCE = 300.0  # seconds
SHORT_PATIENCE = 2.0  # seconds, for whoever comes when the seats are taken
PER_CALLER = 4  # seats
LOOK_AGAIN = 1.0  # seconds between looks at the row, in case a ring was lost

_seated: Counter[int] = Counter()
_lock = threading.Lock()

Told = Callable[[Call, Exchange], Mapping[str, Any]]


def until_final(exchange: Exchange, call: Call, told: Told) -> Iterator[Mapping[str, Any] | None]:
    """The messages of the stream: where the task moves meanwhile, and its result; or that it takes longer still."""
    moved, given_up = threading.Event(), threading.Event()

    def give_up() -> None:
        given_up.set()
        moved.set()

    ears = bell.listening(str(call.pk), moved.set), bell.listening(exchange.cancel_topic, give_up)
    with _seat(exchange.caller.agent_id) as patience, ears[0], ears[1]:
        until, state = time.monotonic() + patience, call.state
        while not given_up.is_set():
            moved.clear()
            row = calls.read(call.pk)
            assert row is not None
            if is_final(row):
                yield _last(row, exchange, told)
                return
            if row.state != state:
                state = row.state
                yield {"method": "notifications/tasks/status", "params": task(row, exchange, legacy_status(row))}
            left = until - time.monotonic()
            if left <= 0 or stopping.is_stopping():
                yield {"error": _still_going().as_error()}
                return
            moved.wait(min(left, LOOK_AGAIN))
            yield None


def _last(row: Call, exchange: Exchange, told: Told) -> dict[str, Any]:
    try:
        return {"result": told(row, exchange)}
    except RpcError as error:
        return {"error": error.as_error()}


def _still_going() -> RpcError:
    detail = "Ask for it with tasks/get, or for its result once more"
    return RpcError(UNAVAILABLE, "The task takes longer than a request may wait", {"detail": detail})


@contextmanager
def _seat(agent: int) -> Iterator[float]:
    """How long this one may wait; a quarter of the threads at most wait for long, and few of them for one agent."""
    with _lock:
        is_free = _seated.total() < settings.PLACET_WEB_THREADS // 4 and _seated[agent] < PER_CALLER
        _seated[agent] += is_free
    try:
        yield PATIENCE if is_free else SHORT_PATIENCE
    finally:
        with _lock:
            _seated[agent] -= is_free
            if not _seated[agent]:
                del _seated[agent]
