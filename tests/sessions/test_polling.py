"""The long poll: what it tells, when it answers, and how few threads it may hold."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pytest
from django.db import connection

from execution import bell, dispatch
from execution.errors import ErrorCode
from tests.sessions.conftest import Ask, Publish
from tests.sessions.worker import Worker

if TYPE_CHECKING:
    from registry.models import ToolkitVersion

Hire = Callable[..., Worker]
pytestmark = pytest.mark.django_db


def test_a_request_tells_all_that_the_tool_needs(worker: Worker, ask: Ask) -> None:
    call = ask({"z": 1, "a": {"password": "exactly this"}}, call_id="order-7")
    (request,) = worker.requests()
    assert request.pop("traceparent").startswith("00-")
    assert 0 < request.pop("deadline") - time.time() * 1000 < 10_000_000
    assert list(request["arguments"]) == ["z", "a"]
    assert request == {
        "requestId": str(call.pk),
        "callId": "order-7",
        "state": "PENDING",
        "toolkit": "Warehouse",
        "tool": "Locate",
        "toolId": "Warehouse.Locate@1.0.0",
        "arguments": {"z": 1, "a": {"password": "exactly this"}},
        "attempt": 1,
        "idempotencyKey": str(call.pk),
        "timeout": 30.0,
        "agent": "robot",
        "requires": {"secrets": [], "authorization": [], "userId": False},
    }


def test_an_idempotency_key_stays_the_same_over_all_attempts(worker: Worker, ask: Ask, hire: Hire) -> None:
    from execution.sweeping import sweep
    from tests.sessions.worker import fall_silent

    call = ask()
    (first,) = worker.requests()
    worker.beat(call)
    (held,) = worker.requests(state="PROCESSING")
    fall_silent(call)
    sweep()
    (second,) = hire("other").requests()
    assert (first["attempt"], held["attempt"], second["attempt"]) == (1, 1, 2)
    assert first["idempotencyKey"] == held["idempotencyKey"] == second["idempotencyKey"]


def test_pages_follow_one_another_without_gaps(worker: Worker, ask: Ask) -> None:
    for number in range(5):
        ask({"n": number})
    seen, pages = [], 0
    after: dict[str, str] = {}
    while True:
        page = worker.page(limit=2, **after)
        seen += [each["arguments"]["n"] for each in page["requests"]]
        pages += 1
        if page["next"] is None:
            break
        after = {"after": page["next"]}
    assert (seen, pages) == ([0, 1, 2, 3, 4], 3)
    for state in ("PROCESSING", "COMPLETE"):
        assert worker.page(state=state, limit=2) == {"requests": [], "next": None}


def test_a_page_of_large_requests_is_cut_and_the_first_always_told(
    worker: Worker, ask: Ask, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("execution.sessions.polling.MAX_SEALED", 1_000)
    for _ in range(3):
        ask({"text": "x" * 900})
    page = worker.page()
    assert (len(page["requests"]), page["next"]) == (1, page["requests"][0]["requestId"])


@pytest.mark.parametrize(
    "query", ["state=DONE", "state=pending", "wait=x", "wait=-1", "limit=x", "after=x", "wait=1e9", "limit=%00"]
)
def test_a_bad_question_is_400(worker: Worker, query: str) -> None:
    assert worker.send("GET", f"/v1/sessions/{worker.session}/requests?{query}").status_code == 400


def test_without_work_the_answer_is_empty_once_patience_ends(worker: Worker) -> None:
    began = time.monotonic()
    assert worker.requests(wait=0.3) == []
    assert 0.25 < time.monotonic() - began < 5


def test_a_server_that_ends_lets_everyone_go_who_waits(
    worker: Worker, ask: Ask, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("execution.stopping.is_stopping", lambda: True)
    began = time.monotonic()
    assert worker.requests(wait=20) == []
    call = ask()
    failure = dispatch.follow(call.pk, wait=20).failure
    dispatch.until_moved(call, wait=20)
    assert failure is not None
    assert failure.code is ErrorCode.STILL_RUNNING
    assert time.monotonic() - began < 10


def test_a_retry_is_not_offered_before_its_time(publish: Publish, hire: Hire, ask: Ask) -> None:
    publish(attempts=2, backoff="20s")
    worker, other, call = hire(), hire("other"), ask()
    worker.beat(call)
    assert worker.fail(call, "busy", canRetry=True) == 200
    assert (worker.requests(), other.requests(), other.beat(call)) == ([], [], 409)


@pytest.mark.django_db(transaction=True)
def test_a_waiting_session_is_woken_by_a_call_and_told_of_its_own_end(
    warehouse: ToolkitVersion, hire: Hire, ask: Ask, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rings from other processes are heard in the stories."""
    monkeypatch.setattr("execution.bell.ring", lambda topic, **_: bell._heard(topic))
    monkeypatch.setattr("execution.sessions.polling.LOOK_AGAIN", 10.0)
    worker = hire()
    answers: list[tuple[float, Any]] = []

    def poll() -> None:
        answer = worker.send("GET", f"/v1/sessions/{worker.session}/requests?wait=9")
        answers.append((time.monotonic(), answer))
        connection.close()

    def held(act: Callable[[], Any]) -> tuple[float, Any]:
        thread = threading.Thread(target=poll)
        thread.start()
        time.sleep(0.7)
        began = time.monotonic()
        act()
        thread.join(20)
        at, answer = answers.pop()
        return at - began, answer

    took, answer = held(lambda: ask({"n": 1}))
    assert (took < 2, answer.json()["requests"][0]["arguments"]) == (True, {"n": 1})
    worker.beat(answer.json()["requests"][0]["requestId"])
    monkeypatch.setattr("execution.sessions.polling.LOOK_AGAIN", 0.2)
    took, answer = held(worker.close)
    assert (took < 3, answer.status_code) == (True, 404)


def test_who_finds_no_seat_is_answered_at_once_and_told_to_come_back(worker: Worker, settings: Any) -> None:
    from execution.sessions import seats

    settings.PLACET_WEB_THREADS = 8  # three seats in all, two for each caller
    agent = worker.agent.agent.pk
    path = f"/v1/sessions/{worker.session}/requests?wait=0.2"
    with seats.taken(agent) as first, seats.taken(agent) as second:
        assert (first, second) == (True, True)
        began = time.monotonic()
        answer = worker.send("GET", path)
        assert (answer.json()["requests"], answer["Retry-After"]) == ([], "1")
        assert time.monotonic() - began < 0.2
        with seats.taken(agent + 1) as third, seats.taken(agent + 2) as fourth:
            assert (third, fourth) == (True, False)
    assert "Retry-After" not in worker.send("GET", path)


def test_a_poll_without_work_costs_few_queries(worker: Worker, django_assert_max_num_queries: Any) -> None:
    worker.requests()
    with django_assert_max_num_queries(4):
        worker.requests()
