"""How a pulled call ends well: checks 12 to 14 of the specification's section (b)."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pytest

from tests.sessions.conftest import Ask, Publish
from tests.sessions.worker import Worker, events, state_of, told

if TYPE_CHECKING:
    pass

Hire = Callable[..., Worker]
pytestmark = pytest.mark.django_db


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"response": None},
        {"response": []},
        {"response": "COMPLETE"},
        {"response": {}},
        {"response": {"state": "PROCESSING"}},
        {"response": {"state": "complete"}},
        {"response": {"state": "ERROR", "error": "x"}},
        {"response": {"state": True}},
        {"state": "COMPLETE"},
    ],
)
def test_12_a_bad_response_is_400_and_changes_nothing(worker: Worker, ask: Ask, body: Any) -> None:
    call = ask()
    worker.beat(call)
    assert worker.respond(call, body) == 400
    assert state_of(call) == "running"


def test_13_a_response_completes_a_request_that_is_processed(worker: Worker, ask: Ask) -> None:
    call = ask()
    worker.beat(call)
    assert worker.answer(call, bin=3) == 200
    assert (state_of(call), events(call)[-1]) == ("succeeded", "succeeded")
    attempt = call.attempts.get()
    assert (attempt.number, attempt.where, attempt.status) == (1, f"session@{worker.session}", "succeeded")


def test_13_who_never_took_the_request_cannot_answer_it(worker: Worker, ask: Ask) -> None:
    """Policy judges before a tool runs: the heartbeat is where it does."""
    call = ask()
    assert (worker.answer(call, bin=3), worker.fail(call)) == (409, 409)
    assert state_of(call) == "queued"
    assert worker.beat(call) == 200


def test_14_all_fields_besides_the_state_reach_the_caller_unchanged(worker: Worker, ask: Ask) -> None:
    call = ask()
    worker.beat(call)
    body = (
        '{"response": {"zebra": 1, "state": "COMPLETE", "apple": 1.0, "Ünïcode ☃": "\\u00e9\\u2028",'
        ' "nested": {"z": [null, true, {"b": 1e-7, "a": -0.0}], "a": ""}, "wide": 9007199254740993}}'
    )
    assert worker.respond(call, body.encode()) == 200
    value = told(call).value
    expected = json.loads(body)["response"]
    del expected["state"]
    assert json.dumps(value) == json.dumps(expected)


def test_14_a_lone_result_is_the_value_itself(publish: Publish, hire: Hire, ask: Ask) -> None:
    publish(output={"type": "number"})
    worker, call = hire(), ask()
    worker.beat(call)
    assert worker.answer(call, result=4.5) == 200
    assert told(call).value == 4.5


def test_14_a_result_that_breaks_the_tools_promise_fails_the_call(publish: Publish, hire: Hire, ask: Ask) -> None:
    publish(output={"type": "object", "properties": {"bin": {"type": "integer"}}, "required": ["bin"]})
    worker, call = hire(), ask()
    worker.beat(call)
    assert worker.answer(call, bin="seven") == 200
    assert (state_of(call), told(call).failure.code.wire) == ("failed", "execution_failed")


def test_14_an_answer_over_the_limit_is_413_and_the_worker_may_still_say_so(worker: Worker, ask: Ask) -> None:
    call = ask()
    worker.beat(call)
    assert worker.answer(call, text="x" * 1_000_001) == 413
    assert state_of(call) == "running"
    assert worker.fail(call, "The result is too large", canRetry=True, retryAfterMs=5) == 200
    failure = told(call).failure
    assert (failure.can_retry, failure.retry_after_ms) == (True, 5)
