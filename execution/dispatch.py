"""Queue after commit, wait until the caller's patience ends."""

import logging
import threading
import time
from typing import Any
from uuid import UUID

from django.conf import settings

from execution import bell, calls, stopping
from execution.messages import CallOutcome
from execution.models import Call, State
from execution.outcomes import outcome_of
from execution.sessions import offers

logger = logging.getLogger(__name__)

LOOK_AGAIN = 1.0  # seconds between looks at the row, in case a ring was lost
SHORT_PATIENCE = 2.0  # seconds, when so many wait that others would not be served
BROKER_PAUSE = 2.0  # seconds in which we do not knock again at a broker that did not answer

_waiting = 0
_waiting_lock = threading.Lock()
_broker_away_until = 0.0


def send(call: UUID, *, delay: float = 0.0) -> bool:
    """Wake a worker, if the broker is there. The row is the truth: what is not sent now, the sweeper sends later."""
    from execution.tasks import perform_call

    return _given(perform_call, f"call {call}", str(call), delay)


def look(callback: int, *, delay: float = 0.0) -> bool:
    """Have a worker ask for a late answer; as above, what is not sent now is found by the sweeper."""
    from execution.tasks import look_for_answer

    return _given(look_for_answer, f"callback {callback}", callback, delay)


def _given(task: Any, what: str, argument: Any, delay: float) -> bool:
    global _broker_away_until
    if time.monotonic() < _broker_away_until:
        return False
    try:
        task.apply_async(args=[argument], countdown=delay or None)
    except Exception as error:  # each kind of broker fails in its own way; none of them may cost a call its answer
        _broker_away_until = time.monotonic() + BROKER_PAUSE
        logger.warning("the broker is away (%s); the sweeper will send %s", type(error).__name__, what)
        return False
    return True


def send_and_follow(call: UUID, *, wait: float, toolkit: int | None = None) -> CallOutcome:
    """Wake a worker for a call that was queued just now, and wait for what becomes of it.

    A call that outside workers pull goes to those that serve its `toolkit`.
    """
    moved = threading.Event()
    with bell.listening(str(call), moved.set), patience(wait) as until:
        if toolkit is None:
            send(call)  # we listen already: there is nothing to see before the bell rings
        else:
            offers.announce(toolkit)
        moved.wait(min(wait, LOOK_AGAIN))
        return _followed(call, moved, until)


def follow(call: UUID, *, wait: float) -> CallOutcome:
    """What became of the call, or after `wait` seconds that it goes on."""
    moved = threading.Event()
    with bell.listening(str(call), moved.set), patience(wait) as until:
        return _followed(call, moved, until)


def _followed(call: UUID, moved: threading.Event, until: float) -> CallOutcome:
    while True:
        moved.clear()
        row = calls.read(call)
        assert row is not None
        left = _left(until)
        if not row.is_open or row.state == State.AWAITING_APPROVAL or left <= 0:  # people take longer than a door waits
            return outcome_of(row)
        moved.wait(min(left, LOOK_AGAIN))


def until_moved(call: Call, *, wait: float) -> None:
    """Hold until the call leaves the phase it is in: parked, under way, ended."""
    moved = threading.Event()
    phase = _phase(call.state)
    with bell.listening(str(call.pk), moved.set), patience(wait) as until:
        while (left := _left(until)) > 0:
            moved.clear()
            if _phase(Call.objects.values_list("state", flat=True).get(pk=call.pk)) != phase:
                return
            moved.wait(min(left, LOOK_AGAIN))


def _left(until: float) -> float:
    """Seconds; none once this server is about to end: the call goes on, and its caller can ask for it again."""
    return 0.0 if stopping.is_stopping() else until - time.monotonic()


def _phase(state: str) -> str:
    return "under way" if state in (State.QUEUED, State.RUNNING, State.WAITING_CALLBACK) else state


class patience:
    """A waiting caller holds a thread; when most threads wait, the next ones wait only briefly."""

    def __init__(self, wait: float) -> None:
        self._wait = wait

    def __enter__(self) -> float:
        global _waiting
        with _waiting_lock:
            _waiting += 1
            is_crowded = _waiting > settings.PLACET_WEB_THREADS * 3 // 4
        return time.monotonic() + (min(self._wait, SHORT_PATIENCE) if is_crowded else self._wait)

    def __exit__(self, *_: object) -> None:
        global _waiting
        with _waiting_lock:
            _waiting -= 1
