"""The lifecycle of a pulled call, check by check: the numbers are those of the specification's section (b)."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pytest
from django.test import Client

from tests.sessions.conftest import Ask, Publish
from tests.sessions.worker import BEAT, Worker, events, run_late, state_of, told

if TYPE_CHECKING:
    from registry.models import ToolkitVersion

Hire = Callable[..., Worker]
pytestmark = pytest.mark.django_db


def test_01_without_credentials_it_is_401_whether_the_session_exists_or_not(
    client: Client, worker: Worker, ask: Ask
) -> None:
    call = ask()
    answers = []
    for session, request in ((worker.session, call.pk), (worker.session, "nothing"), ("nothing", "nothing")):
        for path in (f"/v1/tools/request/{session}/{request}/heartbeat", f"/v1/tools/response/{session}/{request}"):
            for headers in ({}, {"Authorization": "Bearer nonsense"}):
                answer = client.post(path, b"{", content_type="application/json", headers=headers)
                assert (answer.status_code, "WWW-Authenticate" in answer) == (401, True)
                answers.append((bool(headers), answer.content))
    assert len(set(answers)) == 2
    for path in ("/v1/sessions", f"/v1/sessions/{worker.session}", f"/v1/sessions/{worker.session}/requests"):
        assert client.get(path).status_code == 401
    assert client.delete(f"/v1/sessions/{worker.session}").status_code == 401


@pytest.mark.parametrize("method", ["GET", "PUT", "PATCH", "DELETE"])
def test_02_other_verbs_are_405(worker: Worker, ask: Ask, method: str) -> None:
    call = ask()
    for path in (worker.beat_path(call), worker.response_path(call)):
        answer = worker.send(method, path, BEAT)
        assert (answer.status_code, answer["Allow"]) == (405, "POST")
    assert state_of(call) == "queued"


def test_03_a_request_goes_by_its_own_id_and_by_the_id_that_its_caller_chose(worker: Worker, ask: Ask) -> None:
    call = ask(call_id="toolu_01A09q90qw90lq917835lq9")
    (request,) = worker.requests()
    assert (request["requestId"], request["callId"]) == (str(call.pk), call.call_id)
    assert worker.beat(call.call_id) == 200
    assert worker.answer(call.call_id, bin=7) == 200
    assert told(call).value == {"bin": 7}


def test_03_an_id_that_two_callers_chose_means_neither(worker: Worker, ask: Ask) -> None:
    from policy import agents

    first = ask(call_id="same")
    second = ask(call_id="same", agent=agents.create("other", actor="shell", call_all=True))
    assert worker.beat("same") == 404
    assert (worker.beat(first), worker.beat(second)) == (200, 200)


def test_04_a_new_request_is_pending_and_only_the_server_says_so(worker: Worker, ask: Ask) -> None:
    call = ask({"part": "nut"})
    (request,) = worker.requests()
    assert (request["state"], request["arguments"], request["attempt"]) == ("PENDING", {"part": "nut"}, 1)
    assert worker.beat(call, {"state": "PENDING", "heartbeat": 1}) == 400
    assert worker.requests() == [request]


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"heartbeat": 1},
        {"state": 1, "heartbeat": 1},
        {"state": None, "heartbeat": 1},
        {"state": ["PROCESSING"], "heartbeat": 1},
        {"state": "PROCESSING"},
        {"state": "PROCESSING", "heartbeat": None},
        {"state": "PROCESSING", "heartbeat": "1758377600000"},
        {"state": "PROCESSING", "heartbeat": True},
        {"state": "processing", "heartbeat": 1},
        {"state": "ERROR"},
        {"state": "ERROR", "error": ""},
        {"state": "ERROR", "error": "  "},
        {"state": "ERROR", "error": 5},
        {"state": "ERROR", "error": "x", "canRetry": "yes"},
        {"state": "ERROR", "error": "x", "retryAfterMs": -1},
        {"state": "ERROR", "error": "x", "developerMessage": 1},
        {"state": "COMPLETE", "heartbeat": 1},
        {"state": "DONE", "heartbeat": 1},
        {"state": "", "heartbeat": 1},
    ],
)
def test_05_10_11_a_bad_heartbeat_is_400_and_changes_nothing(worker: Worker, ask: Ask, body: Any) -> None:
    pending, processing = ask(), ask()
    assert worker.beat(processing) == 200
    assert (worker.beat(pending, body), worker.beat(processing, body)) == (400, 400)
    assert (state_of(pending), state_of(processing)) == ("queued", "running")


def test_06_the_first_heartbeat_takes_the_request(worker: Worker, ask: Ask) -> None:
    from execution.models import Pull

    call = ask()
    assert worker.beat(call) == 200
    call.refresh_from_db()
    assert (call.state, call.fence, call.lease_until is not None) == ("running", 1, True)
    pull = Pull.objects.get(call=call)
    assert (pull.session_id, pull.agent.name) == (worker.session, "picker")
    assert worker.requests() == []
    (request,) = worker.requests(state="PROCESSING")
    assert (request["requestId"], request["state"]) == (str(call.pk), "PROCESSING")


def test_07_further_heartbeats_refresh_the_lock_without_limit(worker: Worker, ask: Ask) -> None:
    call = ask()
    worker.beat(call)
    call.refresh_from_db()
    first = call.lease_until
    before = events(call)
    for _ in range(20):
        assert worker.beat(call) == 200
    call.refresh_from_db()
    assert call.lease_until is not None
    assert first is not None
    assert (call.fence, call.lease_until > first, events(call)) == (1, True, before)


def test_08_what_is_not_the_callers_is_404(
    publish: Publish, worker: Worker, ask: Ask, hire: Hire, warehouse: ToolkitVersion
) -> None:
    publish("Kitchen")
    cook = hire("cook", "Kitchen")
    call, soup = ask(), ask(tool="Kitchen.Locate")
    thief = Worker(worker.client, cook.agent)
    thief.session = worker.session
    nobody = Worker(worker.client, worker.agent)
    nobody.session = "ses_nothing"
    for who, request in ((thief, call), (nobody, call), (worker, "nothing"), (worker, soup), (cook, call)):
        assert who.beat(request) == 404
        assert who.answer(request) == 404
        assert who.fail(request) == 404
    assert (state_of(call), state_of(soup)) == ("queued", "queued")
    assert thief.send("GET", f"/v1/sessions/{worker.session}/requests").status_code == 404
    assert thief.close() == 404
    assert worker.requests()


def test_09_16_an_ended_request_takes_nothing_more(worker: Worker, ask: Ask) -> None:
    complete, error = ask(), ask()
    for call in (complete, error):
        worker.beat(call)
    assert worker.answer(complete, bin=1) == 200
    assert worker.fail(error, "Permission denied: user lacks access") == 200
    for call in (complete, error):
        assert (worker.beat(call), worker.answer(call, bin=2), worker.fail(call)) == (409, 409, 409)
    assert (told(complete).value, state_of(error)) == ({"bin": 1}, "failed")


def test_09_16_an_abandoned_request_takes_nothing_more(worker: Worker, ask: Ask) -> None:
    from execution import calls

    pending, processing = ask(), ask()
    worker.beat(processing)
    for call in (pending, processing):
        calls.cancel(call, actor="agent:robot")
        assert (worker.beat(call), worker.answer(call), worker.fail(call)) == (409, 409, 409)
        assert state_of(call) == "cancelled"


def test_10_15_an_error_ends_the_request_and_its_text_reaches_the_caller(worker: Worker, ask: Ask) -> None:
    call = ask()
    worker.beat(call)
    assert worker.fail(call, "Permission denied: user lacks access to location records") == 200
    failure = told(call).failure
    assert (state_of(call), failure.code.wire) == ("failed", "execution_failed")
    assert failure.message == "Permission denied: user lacks access to location records"
    assert events(call)[-2:] == ["started", "failed"]


def test_22_only_four_states_are_visible(worker: Worker, ask: Ask) -> None:
    from execution import calls

    pending, processing, complete, error, abandoned = (ask() for _ in range(5))
    for call in (processing, complete, error, abandoned):
        worker.beat(call)
    worker.answer(complete)
    worker.fail(error)
    calls.cancel(abandoned, actor="agent:robot")
    found = {state: worker.requests(state=state) for state in ("PENDING", "PROCESSING", "COMPLETE", "ERROR")}
    for (state, requests), call in zip(found.items(), (pending, processing, complete, error), strict=True):
        assert [(each["requestId"], each["state"]) for each in requests] == [(str(call.pk), state)]
    assert worker.send("GET", f"/v1/sessions/{worker.session}/requests?state=ABANDONED").status_code == 400


def test_23_a_timed_out_attempt_is_over_and_the_call_with_it(publish: Publish, hire: Hire, ask: Ask) -> None:
    publish(timeout="20s")
    worker, call, other = hire(), ask(), ask()
    worker.beat(call)
    worker.beat(other)
    run_late(call)
    run_late(other)
    assert (worker.beat(call), state_of(call)) == (409, "timed_out")
    assert (worker.answer(other, bin=1), state_of(other)) == (409, "timed_out")
    assert told(call).failure.code.wire == "timeout"


def test_23_the_sweeper_ends_an_attempt_that_had_its_time(publish: Publish, hire: Hire, ask: Ask) -> None:
    from execution.sweeping import sweep

    publish(attempts=2)
    worker, call = hire(), ask()
    worker.beat(call)
    run_late(call)
    sweep()
    assert (state_of(call), call.fence) == ("queued", 1)
    assert worker.beat(call) == 409
    assert worker.requests()[0]["attempt"] == 2


def test_24_several_requests_are_worked_on_at_once(worker: Worker, ask: Ask) -> None:
    calls = [ask({"n": number}) for number in range(3)]
    assert [each["arguments"]["n"] for each in worker.requests()] == [0, 1, 2]
    assert [worker.beat(call) for call in calls] == [200] * 3
    assert worker.answer(calls[1], n=1) == 200
    assert [state_of(call) for call in calls] == ["running", "succeeded", "running"]


def test_25_a_deleted_session_is_404_and_what_it_held_goes_on_elsewhere(worker: Worker, ask: Ask, hire: Hire) -> None:
    other, held, waiting = hire("other"), ask(), ask()
    worker.beat(held)
    assert worker.close() == 204
    assert (worker.beat(held), worker.answer(held), worker.fail(held), worker.close()) == (404, 404, 404, 404)
    assert worker.send("GET", f"/v1/sessions/{worker.session}/requests").status_code == 404
    assert {each["requestId"]: each["attempt"] for each in other.requests()} == {str(held.pk): 2, str(waiting.pk): 1}
    assert (other.beat(held), other.answer(held, bin=1)) == (200, 200)


def test_25_a_deleted_session_leaves_what_must_not_run_twice_unknown(publish: Publish, hire: Hire, ask: Ask) -> None:
    publish(idempotency="non_idempotent")
    worker, held = hire(), ask()
    worker.beat(held)
    worker.close()
    assert state_of(held) == "unknown"


@pytest.mark.parametrize(
    "call_id", ["a/b", "ü ☃", "100%", "x?y=1#z", "..", "a%2Fb", "+", '"', "heartbeat", "a/heartbeat"]
)
def test_26_ids_are_opaque(worker: Worker, ask: Ask, call_id: str) -> None:
    call = ask(call_id=call_id)
    assert worker.beat(call_id) == 200
    assert worker.answer(call_id, bin=1) == 200
    assert state_of(call) == "succeeded"


@pytest.mark.parametrize(
    "id", ["\0", "%00", "a\nb", "{}", "x" * 3000, "0" * 36, "00000000-0000-0000-0000-00000000000G"]
)
def test_26_ids_that_mean_nothing_are_404(worker: Worker, ask: Ask, id: str) -> None:
    call = ask()
    assert (worker.beat(id), worker.answer(id)) == (404, 404)
    assert worker.beat(str(call.pk).upper()) == 404
    stranger = Worker(worker.client, worker.agent)
    stranger.session = "x" if "/" in id else id.replace("\0", "%00").replace("\n", "%0A").replace("{", "%7B")
    assert stranger.beat(call) in (400, 404)


@pytest.mark.parametrize(
    "body", [b"", b"{", b"[]", b"null", b'"PROCESSING"', b"1", b'{"state": "PROCESSING", "heartbeat": NaN}', b"\xff"]
)
def test_27_a_body_that_is_no_json_object_is_400(worker: Worker, ask: Ask, body: bytes) -> None:
    call = ask()
    worker.beat(call)
    assert (worker.beat(call, body), worker.respond(call, body)) == (400, 400)
    assert worker.send("POST", "/v1/sessions", body).status_code == 400
    assert state_of(call) == "running"


def test_27_a_body_of_another_type_is_415(worker: Worker, ask: Ask) -> None:
    answer = worker.send("POST", worker.beat_path(ask()), BEAT, content_type="text/plain")
    assert answer.status_code == 415
