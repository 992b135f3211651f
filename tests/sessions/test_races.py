"""Those who come at the same moment: exactly one wins, on both databases, and the trail holds."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pytest
from django.test import Client

from tests.execution.racing import race
from tests.sessions.conftest import Ask
from tests.sessions.worker import Worker, events, fall_silent, run_late, state_of, told

if TYPE_CHECKING:
    from registry.models import ToolkitVersion

Hire = Callable[..., Worker]
pytestmark = pytest.mark.django_db(transaction=True)
ROUNDS = 15


@pytest.fixture
def pair(warehouse: ToolkitVersion, hire: Hire) -> list[Worker]:
    """Two workers with a client each, for a client has one hand."""
    both = [hire("first"), hire("second")]
    for worker in both:
        worker.client = Client()
    return both


def twin(worker: Worker) -> Worker:
    other = Worker(Client(), worker.agent)
    other.session = worker.session
    return other


def test_of_two_sessions_that_claim_at_once_one_has_the_call(pair: list[Worker], ask: Ask) -> None:
    calls = [ask() for _ in range(ROUNDS)]
    first, second = pair
    for call, statuses in zip(
        calls, race(lambda n: first.beat(calls[n]), lambda n: second.beat(calls[n]), rounds=ROUNDS), strict=True
    ):
        assert sorted(statuses) == [200, 409]
        assert (state_of(call), call.fence, events(call).count("started")) == ("running", 1, 1)
        assert pair[statuses.index(200)].answer(call, bin=1) == 200
        assert pair[statuses.index(409)].answer(call, bin=2) == 409


def test_of_two_responses_at_once_one_is_taken(pair: list[Worker], ask: Ask) -> None:
    worker, other = pair[0], twin(pair[0])
    calls = [ask() for _ in range(ROUNDS)]
    for call in calls:
        worker.beat(call)
    results = race(
        lambda n: worker.answer(calls[n], by="one"), lambda n: other.answer(calls[n], by="other"), rounds=ROUNDS
    )
    for call, statuses in zip(calls, results, strict=True):
        assert sorted(statuses) == [200, 409]
        assert told(call).value == {"by": ("one", "other")[statuses.index(200)]}
        assert (events(call).count("succeeded"), call.attempts.count()) == (1, 1)


def test_of_a_response_and_an_error_at_once_one_is_taken_and_beats_revive_nothing(pair: list[Worker], ask: Ask) -> None:
    worker, other, third = pair[0], twin(pair[0]), twin(pair[0])
    calls = [ask() for _ in range(ROUNDS)]
    for call in calls:
        worker.beat(call)
    results = race(
        lambda n: worker.answer(calls[n]), lambda n: other.fail(calls[n]), lambda n: third.beat(calls[n]), rounds=ROUNDS
    )
    for call, (answered, failed, _) in zip(calls, results, strict=True):
        assert sorted((answered, failed)) == [200, 409]
        assert state_of(call) == ("succeeded" if answered == 200 else "failed")
        assert third.beat(call) == 409


def test_a_take_over_and_the_late_answer_of_the_first_never_both_count(pair: list[Worker], ask: Ask) -> None:
    first, second = pair
    calls = [ask() for _ in range(ROUNDS)]
    for call in calls:
        first.beat(call)
        fall_silent(call)
    results = race(lambda n: first.answer(calls[n], by="first"), lambda n: second.beat(calls[n]), rounds=ROUNDS)
    for call, statuses in zip(calls, results, strict=True):
        assert sorted(statuses) == [200, 409]
        if statuses[1] == 200:
            assert (first.answer(call), second.answer(call, by="second")) == (409, 200)
        assert told(call).value == {"by": "first" if statuses[0] == 200 else "second"}


def test_a_closed_session_and_its_claim_at_once_strand_no_call(warehouse: ToolkitVersion, hire: Hire, ask: Ask) -> None:
    from execution.models import Pull
    from execution.sweeping import sweep

    calls = [ask() for _ in range(ROUNDS)]
    workers = [hire(f"w{number}") for number in range(ROUNDS)]
    twins = [twin(worker) for worker in workers]
    for worker in workers:
        worker.client = Client()
    race(lambda n: workers[n].beat(calls[n]), lambda n: twins[n].close(), rounds=ROUNDS)
    sweep()
    last = hire("last")
    for call in calls:
        assert state_of(call) == "queued"
        assert (last.beat(call), last.answer(call)) == (200, 200)
    assert Pull.objects.count() == ROUNDS


def test_a_cancellation_and_a_response_at_once_are_one_end(pair: list[Worker], ask: Ask) -> None:
    from execution import calls as moves

    worker = pair[0]
    calls = [ask() for _ in range(ROUNDS)]
    for call in calls:
        worker.beat(call)
        call.refresh_from_db()

    def cancel(number: int) -> str:
        return str(moves.cancel(calls[number], actor="agent:robot").state)

    for call, (answered, state) in zip(
        calls, race(lambda n: worker.answer(calls[n]), cancel, rounds=ROUNDS), strict=True
    ):
        assert state_of(call) == state == ("succeeded" if answered == 200 else "cancelled")
        assert call.attempts.count() == 1


def test_a_timeout_and_a_response_at_once_are_one_end(pair: list[Worker], ask: Ask) -> None:
    from execution.sweeping import sweep

    worker = pair[0]
    calls = [ask() for _ in range(ROUNDS)]
    for call in calls:
        worker.beat(call)

    def late(number: int) -> None:
        run_late(calls[number])
        sweep()

    for call, (answered, _) in zip(calls, race(lambda n: worker.answer(calls[n]), late, rounds=ROUNDS), strict=True):
        assert state_of(call) == ("succeeded" if answered == 200 else "timed_out")
        assert call.attempts.count() == 1


def test_sessions_opened_at_once_stay_within_the_cap(warehouse: ToolkitVersion, settings: Any) -> None:
    from policy import agents

    settings.PLACET_MAX_SESSIONS = 1
    many = [agents.create(f"many-{number}", actor="shell", serve=["Warehouse"]) for number in range(ROUNDS)]

    def open(number: int) -> int:
        status: int = Worker(Client(), many[number]).send("POST", "/v1/sessions", {"serves": ["Warehouse"]}).status_code
        return status

    for statuses in race(open, open, open, rounds=ROUNDS):
        assert sorted(statuses) == [201, 429, 429]
