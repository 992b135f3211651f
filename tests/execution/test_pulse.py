"""The pulse: what runs here keeps its lease, hears that it should stop, and survives a database that is away."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from django.conf import settings
from django.db import OperationalError, connection

from execution import bell, calls, losses, pulse
from execution.claim import Claim
from execution.models import Call
from registry.clock import Later
from registry.resolution import resolve
from registry.toolref import ToolRef
from tests.execution.conftest import Call as MakeCall

pytestmark = pytest.mark.django_db(transaction=True)

LEASE = 0.6


class Enough(BaseException):
    """Ends the pulse, which in the product beats for ever."""


@pytest.fixture
def beats(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[Any]]:
    """A pulse with a short lease. Holds what happened at each beat: nothing, or the error that a test had it meet."""
    monkeypatch.setattr(settings, "PLACET_LEASE", LEASE)
    happened: list[Any] = []
    errors: list[Exception] = []
    beat, is_over = pulse._beat, threading.Event()

    def watched(claim: Any) -> None:
        if is_over.is_set():
            raise Enough
        happened.append(errors.pop(0) if errors else None)
        if happened[-1] is not None:
            raise happened[-1]
        beat(claim)

    def run() -> None:
        try:
            with contextlib.suppress(Enough):
                pulse._beat_for_ever()
        finally:
            connection.close()

    monkeypatch.setattr(pulse, "_beat", watched)
    monkeypatch.setattr(pulse, "_errors", errors, raising=False)
    heart = threading.Thread(target=run)
    heart.start()
    yield happened
    is_over.set()
    with pulse._lock:
        pulse._beating["the last"] = None  # type: ignore[index, assignment]  # so that there is one more beat
    heart.join(10)
    pulse._beating.clear()


@pytest.fixture
def claim(call: MakeCall, unsent: list[Any]) -> Claim:
    row = Call.objects.get(pk=call("SlowButSafe", ledger="/nowhere", seconds=0).id)
    ref = ToolRef.parse(row.tool_ref)
    tool = resolve(ref) if ref else None
    assert tool is not None
    claim = calls.claim(row, tool, "tester")
    assert claim is not None
    return claim


def soon(holds: Callable[[], bool], seconds: float = 5.0) -> bool:
    deadline = time.monotonic() + seconds
    while not holds() and time.monotonic() < deadline:
        time.sleep(0.02)
    return holds()


def expire(claim: Claim) -> None:
    Call.objects.filter(pk=claim.id).update(lease_until=Later(-1))


def is_leased(claim: Claim) -> bool:
    return Call.objects.filter(pk=claim.id, lease_until__gt=Later(0)).exists()


def test_a_lease_is_renewed_while_the_call_runs_and_not_after(beats: list[Any], claim: Claim) -> None:
    with pulse.kept(claim):
        expire(claim)
        assert soon(lambda: is_leased(claim))
        assert not claim.cancel.is_set()
    expire(claim)
    time.sleep(LEASE)
    assert not is_leased(claim)


@pytest.mark.parametrize("error", [OperationalError("the database is away"), RuntimeError("whatever")])
def test_a_beat_that_fails_is_not_the_last(beats: list[Any], claim: Claim, error: Exception) -> None:
    pulse._errors.append(error)  # type: ignore[attr-defined]
    with pulse.kept(claim):
        assert soon(lambda: error in beats)
        expire(claim)
        assert soon(lambda: is_leased(claim))


def test_who_was_taken_over_is_told_to_stop(beats: list[Any], claim: Claim) -> None:
    expire(claim)
    assert losses.requeue(Call.objects.get(pk=claim.id))
    assert calls.claim(Call.objects.get(pk=claim.id), claim.tool, "tester")
    expire(claim)
    with pulse.kept(claim):
        assert claim.cancel.wait(5)
    assert not is_leased(claim)  # a lease that another holds is not ours to renew


def test_a_cancellation_is_heard_at_once(claim: Claim) -> None:
    """By the bell: no beat is near."""
    with pulse.kept(claim):
        bell._heard(f"cancel:{claim.id}")
        assert claim.cancel.is_set()


def test_a_cancellation_that_nobody_heard_is_found_by_the_next_beat(beats: list[Any], claim: Claim) -> None:
    calls.cancel(Call.objects.get(pk=claim.id), actor="agent:tester")
    assert not claim.cancel.is_set()
    with pulse.kept(claim):
        assert claim.cancel.wait(5)


def refuse_to_start(thread: threading.Thread) -> None:
    raise RuntimeError("can't start new thread")


def test_a_pulse_that_could_not_be_started_is_started_by_the_next_claim(
    threads_of_our_own: None, claim: Claim, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pulse, "_pid", 0)
    with monkeypatch.context() as patch:
        patch.setattr(threading.Thread, "start", refuse_to_start)
        with pytest.raises(RuntimeError), pulse.kept(claim):
            pass
    assert f"cancel:{claim.id}" not in bell._ears
    assert claim.id not in pulse._beating
    started: list[str] = []
    monkeypatch.setattr(threading.Thread, "start", lambda thread: started.append(thread.name))
    monkeypatch.setattr(bell, "_start", lambda: None)
    with pulse.kept(claim):
        assert started == ["placet-pulse"]
