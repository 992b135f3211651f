"""Whatever two workers, a caller and time do in whatever order: locks, fences, attempts and events stay honest."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import TYPE_CHECKING

import pytest

from tests.sessions.conftest import Ask, Publish
from tests.sessions.worker import Worker, events

if TYPE_CHECKING:
    from execution.models import Call

Hire = Callable[..., Worker]
pytestmark = pytest.mark.django_db
STEPS = 60
ENDED = {"succeeded", "failed", "timed_out", "cancelled", "unknown"}


class Walk:
    """Two calls, two workers, and what must hold after every step."""

    def __init__(self, random: random.Random, workers: list[Worker], calls: list[Call]) -> None:
        self.random, self.workers, self.calls = random, workers, calls
        self.seen = {call.pk: (call.state, 0) for call in calls}

    def step(self) -> None:
        act = self.random.choice([self.beat, self.beat, self.poll, self.answer, self.fail, self.silence, self.late])
        act(self.random.choice(self.workers), self.random.choice(self.calls))
        self.sweep()
        self.check()

    def beat(self, worker: Worker, call: Call) -> None:
        held = self.holder(call)
        status = worker.beat(call)
        assert status in (200, 409)
        assert held != worker.session or status == 200  # a fresh lock of one's own is kept
        assert held in ("", worker.session) or status == 409  # and another's is not taken
        assert (status == 200) == (self.holder(call) == worker.session)

    def answer(self, worker: Worker, call: Call) -> None:
        held = self.holder(call)
        assert (worker.answer(call, by=worker.session) == 200) == (held == worker.session)

    def fail(self, worker: Worker, call: Call) -> None:
        held = self.holder(call)
        assert (worker.fail(call, "busy", canRetry=True) == 200) == (held == worker.session)

    def poll(self, worker: Worker, call: Call) -> None:
        listed = {request["requestId"] for request in worker.requests()}
        for each in self.calls:
            each.refresh_from_db()
            assert (str(each.pk) in listed) == (each.state == "queued")

    def silence(self, worker: Worker, call: Call) -> None:
        from execution.models import Call
        from registry.clock import Later

        Call.objects.filter(pk=call.pk, state="running").update(lease_until=Later(-0.1))

    def late(self, worker: Worker, call: Call) -> None:
        from execution.models import Pull
        from registry.clock import Later

        Pull.objects.filter(call=call).update(deadline=Later(-0.1))

    def sweep(self) -> None:
        from execution.sweeping import sweep

        sweep()  # so that time that has passed is known before the next step

    def holder(self, call: Call) -> str:
        from execution.models import Pull

        call.refresh_from_db()
        pull = Pull.objects.filter(call=call, fence=call.fence).first() if call.state == "running" else None
        return pull.session_id if pull else ""

    def check(self) -> None:
        for call in self.calls:
            call.refresh_from_db()
            state, fence = self.seen[call.pk]
            assert state not in ENDED or (call.state, call.fence) == (state, fence)
            assert call.fence in (fence, fence + 1)
            told = events(call)
            assert told.count("started") == call.fence == call.pulls.count()
            assert call.attempts.count() == call.fence - (call.state == "running")
            assert sum(told.count(end) for end in ENDED) == (call.state in ENDED)
            self.seen[call.pk] = (call.state, call.fence)


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("idempotency", ["keyed", "non_idempotent"])
def test_a_walk(publish: Publish, hire: Hire, ask: Ask, idempotency: str, seed: int) -> None:
    from audit.verification import verify

    publish(idempotency=idempotency, attempts=5)
    walk = Walk(random.Random(seed), [hire("first"), hire("second")], [ask(), ask()])
    for _ in range(STEPS):
        walk.step()
    assert verify().is_intact
