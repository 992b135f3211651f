"""The webhook-callback runtime: what it sends, which answers are answers, and when it says that one comes later."""

from typing import Any

import pytest

from execution.credentials import Credentials
from execution.errors import CallError, ErrorCode
from execution.returnaddress import ReturnAddress
from execution.runtimes.base import AnswersLater
from execution.runtimes.webhook import LookFailed, WebhookRuntime
from tests.runtimes.webkit import TRACEPARENT, invocation, server
from tests.services.toolserver import ToolServer, answer, as_json, hang, reset

__all__ = ["server"]

ADDRESS = ReturnAddress("https://placet.example/v1/tool-callbacks/call-1", "a-token")
OK = {"status": "ok", "output": {"n": 1}}


def ask(server: ToolServer, **fields: Any) -> Any:
    given = {"return_address": ADDRESS, **fields}
    return WebhookRuntime().run(invocation("webhook-callback", f"{server.url}/jobs", **given))


def poll(server: ToolServer, path: str = "/jobs", **fields: Any) -> Any:
    given = {"return_address": ADDRESS, **fields}
    return WebhookRuntime().poll(invocation("webhook-callback", server.url + path, **given))


def test_41_the_envelope_is_posted_with_the_way_back(server: ToolServer) -> None:
    server.answers["/jobs"] = as_json(OK)
    credentials = Credentials(profile="bearer", secret_ref="jobs", headers={"Authorization": "Bearer s3cret"})
    assert ask(server, credentials=credentials, traceparent=TRACEPARENT).value == {"n": 1}
    (asked,) = server.asked
    assert asked.json["request_id"] == "call-1"
    assert asked.json["attempt"] == 2
    assert asked.json["runtime"]["mode"] == "webhook-callback"
    headers = {name: asked.headers[name] for name in ("X-Tool-Contract-Version", "Idempotency-Key", "traceparent")}
    assert headers == {"X-Tool-Contract-Version": "v1", "Idempotency-Key": "call-1", "traceparent": TRACEPARENT}
    assert asked.headers["X-Placet-Callback-Url"] == ADDRESS.url
    assert asked.headers["X-Placet-Callback-Token"] == ADDRESS.token
    assert asked.headers["Authorization"] == "Bearer s3cret"
    assert b"a-token" not in asked.body


@pytest.mark.parametrize("status", [201, 202, 204, 206])
def test_a_success_that_is_not_200_comes_later(server: ToolServer, status: int) -> None:
    server.answers["/jobs"] = answer(b"", status)
    with pytest.raises(AnswersLater) as later:
        ask(server)
    assert later.value.traffic.status == str(status)
    assert later.value.traffic.sent > 0


@pytest.mark.parametrize("told", [{}, {"status": ""}, {"status": " Running "}, {"status": "queued", "progress": 3}])
def test_44_an_answer_without_an_end_comes_later(server: ToolServer, told: Any) -> None:
    server.answers["/jobs"] = server.answers["/jobs/call-1"] = as_json(told)
    with pytest.raises(AnswersLater):
        ask(server)
    with pytest.raises(AnswersLater):
        poll(server)


@pytest.mark.parametrize("told", [[], "ok", {"status": "done"}, {"status": 5}, {"status": "ok", "error": {}}, None])
def test_an_answer_that_is_none_is_a_failure(server: ToolServer, told: Any) -> None:
    server.answers["/jobs"] = as_json(told)
    with pytest.raises(CallError) as failed:
        ask(server)
    assert failed.value.code is ErrorCode.EXECUTION_FAILED
    assert not failed.value.failure.can_retry


def test_what_is_not_json_may_be_the_next_time(server: ToolServer) -> None:
    server.answers["/jobs"] = answer("oops")
    with pytest.raises(CallError) as failed:
        ask(server)
    assert failed.value.failure.can_retry


@pytest.mark.parametrize(
    ("status", "code"),
    [(401, ErrorCode.AUTH_INVALID), (403, ErrorCode.AUTH_FORBIDDEN), (404, ErrorCode.EXECUTION_FAILED)],
)
def test_statuses_are_told_as_the_table_says(server: ToolServer, status: int, code: ErrorCode) -> None:
    server.answers["/jobs"] = server.answers["/jobs/call-1"] = answer("no", status)
    for act in (ask, poll):
        with pytest.raises(CallError) as failed:
            act(server)
        assert failed.value.code is code


@pytest.mark.parametrize("status", [408, 429, 500, 503])
def test_a_server_in_trouble_fails_a_request_and_not_a_look(server: ToolServer, status: int) -> None:
    server.answers["/jobs"] = server.answers["/jobs/call-1"] = answer("no", status, Retry_After="7")
    with pytest.raises(CallError) as failed:
        ask(server)
    assert (failed.value.code, failed.value.failure.can_retry) == (ErrorCode.EXECUTION_FAILED, True)
    with pytest.raises(LookFailed) as look:
        poll(server)
    assert (look.value.delay, look.value.traffic.status) == (7.0, str(status))


def test_without_a_way_back_a_later_answer_is_a_failure(server: ToolServer) -> None:
    server.answers["/jobs"] = answer(b"", 202)
    with pytest.raises(CallError) as failed:
        ask(server, return_address=None)
    assert failed.value.code is ErrorCode.EXECUTION_FAILED
    assert "X-Placet-Callback-Url" not in server.asked[0].headers


@pytest.mark.parametrize("path", ["/jobs", "/jobs/", "/jobs//"])
def test_42_a_look_asks_below_the_endpoint_with_the_same_credentials(server: ToolServer, path: str) -> None:
    server.answers["/jobs/call-1"] = as_json(OK)
    assert poll(server, path, credentials=Credentials(headers={"X-Key": "k"})).value == {"n": 1}
    (asked,) = server.asked
    assert (asked.method, asked.path, asked.body) == ("GET", "/jobs/call-1", b"")
    assert (asked.headers["Accept"], asked.headers["X-Key"]) == ("application/json", "k")
    assert "X-Placet-Callback-Token" not in asked.headers


def test_an_id_of_any_characters_stays_one_step_of_the_path(server: ToolServer) -> None:
    server.answers["/jobs/..%2F%3Fa%23X%20%C3%A4"] = as_json(OK)
    assert poll(server, call_id="../?a#X ä").value == {"n": 1}


@pytest.mark.parametrize("status", [202, 204])
def test_a_look_that_finds_nothing_yet(server: ToolServer, status: int) -> None:
    server.answers["/jobs/call-1"] = answer(b"", status)
    with pytest.raises(AnswersLater):
        poll(server)


def test_a_look_that_breaks_or_takes_too_long_may_work_the_next_time(server: ToolServer) -> None:
    server.answers["/jobs/call-1"] = reset()
    with pytest.raises(LookFailed):
        poll(server)
    server.answers["/jobs/call-1"] = hang()
    with pytest.raises(LookFailed):
        poll(server, timeout=0.2)


@pytest.mark.parametrize("own", ["{url}", "{url}/portal", "{upper}"])
def test_a34_placet_does_not_call_itself(server: ToolServer, settings: Any, own: str) -> None:
    settings.PLACET_URL = own.format(url=server.url, upper=server.url.replace("http", "HTTP"))
    with pytest.raises(CallError) as failed:
        ask(server)
    assert (failed.value.code, failed.value.is_sent) == (ErrorCode.RUNTIME_INVALID, False)
    assert server.asked == []


def test_the_way_back_is_never_printed() -> None:
    assert "a-token" not in repr(ADDRESS) + str(ADDRESS)


def test_numbers_of_any_length_are_sent_as_they_are(server: ToolServer) -> None:
    server.answers["/jobs"] = as_json(OK)
    ask(server, arguments={"n": 10**30})
    assert server.asked[0].json["input"] == {"n": 10**30}
