"""placet.serve: pulls, beats, answers, reports errors, and goes on whatever the server does."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

import placet
from placet import Image, RetryableToolError, ServingError, ToolContext, Toolkit, ToolkitError, tool
from tests.placet.sessionserver import SessionServer, session_server

toolkit = Toolkit("Shop", "1.0.0")
running = threading.Event()
gate = threading.Event()


@tool(description="Adds.")
def add(a: int, b: int) -> int:
    return a + b


@tool(description="Tells of its circumstances.")
def circumstances(context: ToolContext) -> dict[str, Any]:
    return {"key": context.idempotency_key, "secret": context.secrets["MAPS"], "user": context.user_id}


@tool(description="Would do without its secrets.")
def forgiving(context: ToolContext) -> None:
    running.set()


@tool(description="Shows a picture.")
def picture() -> Image:
    return Image(b"png", "image/png")


@tool(description="Is busy.")
def busy() -> None:
    raise RetryableToolError("Busy", developer_message="overloaded", retry_after_ms=50)


@tool(description="Breaks.")
def broken() -> None:
    raise KeyError("no such thing")


@tool(description="Leaves.")
def leaves() -> None:
    sys.exit("no more of this")


@tool(description="Returns what JSON cannot say.")
def unspeakable() -> object:
    return object()


@tool(description="Waits for the gate.")
async def waits() -> str:
    running.set()
    while not gate.is_set():
        time.sleep(0.01)
    return "through"


@pytest.fixture
def server() -> Iterator[SessionServer]:
    running.clear()
    gate.clear()
    with session_server() as server:
        yield server


@contextmanager
def served(server: SessionServer, **more: Any) -> Iterator[threading.Event]:
    """The tools of this module, served from a thread until the block ends."""
    stop, failures = threading.Event(), []

    def work() -> None:
        try:
            placet.serve(toolkit, server.url, "the-key", stop=stop, **more)
        except BaseException as error:
            failures.append(error)

    thread = threading.Thread(target=work)
    thread.start()
    try:
        yield stop
    finally:
        gate.set()
        stop.set()
        thread.join(30)
        assert not thread.is_alive()
    if failures:
        raise failures[0]


def test_a_call_is_taken_run_and_answered(server: SessionServer) -> None:
    server.offer("Add", a=2, b=3)
    with served(server):
        assert server.answered() == {"result": 5, "state": "COMPLETE"}
    assert (server.opened, server.beats[0]) == ([{"serves": ["Shop"]}], "r-1")
    assert (server.closed, server.keys) == (["s-1"], {"Bearer the-key"})


@pytest.mark.parametrize("others", [[], ["r-0", "r-00"]])
def test_a_tool_gets_what_its_caller_brought(server: SessionServer, others: list[str]) -> None:
    server.others = others
    server.offer("Circumstances")
    server.pending[0]["requires"] = {"secrets": ["MAPS"], "authorization": [], "userId": True}
    server.context = {"secrets": {"MAPS": "s3"}, "authorization": {}, "userId": "ana"}
    with served(server):
        assert server.answered() == {"key": "r-1", "secret": "s3", "user": "ana", "state": "COMPLETE"}


def test_a_tool_does_not_run_without_what_its_caller_brought(server: SessionServer) -> None:
    server.holds = False
    server.offer("Forgiving")
    server.pending[0]["requires"] = {"secrets": ["MAPS"], "authorization": [], "userId": False}
    with served(server):
        told = server.answered()
    assert (told["state"], told["developerMessage"]) == (
        "ERROR",
        "Refused: the session does not hold the request any more",
    )
    assert not running.is_set()


@pytest.mark.parametrize(
    ("name", "arguments", "told"),
    [
        ("Busy", {}, {"error": "Busy", "canRetry": True, "retryAfterMs": 50, "developerMessage": "overloaded"}),
        ("Broken", {}, {"error": "The tool failed unexpectedly", "developerMessage": "KeyError: 'no such thing'"}),
        ("Leaves", {}, {"error": "The tool failed unexpectedly", "developerMessage": "SystemExit: no more of this"}),
        ("Unspeakable", {}, {"error": "The tool gave no usable result"}),
        ("Picture", {}, {"developerMessage": "a session's response has no place for content blocks; return a value"}),
        ("Add", {"a": "two", "b": 3}, {"error": "Some input parameters are invalid", "canRetry": False}),
        ("Add", {"a": 2}, {"error": "The tool failed unexpectedly"}),
    ],
)
def test_a_failure_is_reported_with_what_the_tool_says_of_it(
    server: SessionServer, name: str, arguments: Any, told: Any
) -> None:
    server.offer(name, **arguments)
    with served(server):
        answer = server.answered()
    assert answer["state"] == "ERROR"
    assert {key: answer[key] for key in told} == told


def test_heartbeats_go_on_while_the_tool_works(server: SessionServer) -> None:
    server.offer("Waits")
    with served(server):
        assert running.wait(10)
        before = len(server.beats)
        time.sleep(0.8)
        assert len(server.beats) - before >= 2
        gate.set()
        assert server.answered()["result"] == "through"


def test_a_call_after_a_long_rest_is_kept_alive_from_its_first_heartbeat_on(
    server: SessionServer, caplog: pytest.LogCaptureFixture
) -> None:
    with served(server):
        for id in ("r-1", "r-2"):
            gate.clear()
            server.offer("Waits", id)
            while server.beats.count(id) < 4:  # the first takes it, and those that follow keep it
                time.sleep(0.01)
            gate.set()
            server.answered(id)
            time.sleep(1.5)  # longer than the server keeps a connection that nobody uses
    assert not [record for record in caplog.records if "heartbeat" in record.message]


def test_several_calls_run_at_once_and_no_more_than_allowed(server: SessionServer) -> None:
    for number in range(3):
        server.offer("Waits", id=f"r-{number}")
    with served(server, at_once=2):
        assert running.wait(10)
        time.sleep(0.7)
        assert len(set(server.beats)) == 2
        gate.set()
        assert all(server.answered(f"r-{number}") for number in range(3))


def test_a_call_that_was_taken_away_is_not_answered(server: SessionServer) -> None:
    server.offer("Waits")
    with served(server):
        assert running.wait(10)
        server.troubles.append(_for("/heartbeat", (409, {"error": {"message": "gone"}})))
        time.sleep(0.6)
        gate.set()
        time.sleep(0.3)
        assert server.answers == {}
        server.troubles.clear()
        server.offer("Add", id="r-2", a=1, b=1)
        assert server.answered("r-2")["result"] == 2


def test_what_another_has_taken_or_this_worker_does_not_know_is_left_alone(server: SessionServer) -> None:
    server.offer("Fly")
    server.offer("Add", id="r-2", a=1, b=1)
    server.troubles.append(_for("/r-2/heartbeat", (409, {"error": {"message": "taken"}})))
    with served(server):
        time.sleep(1.5)
        assert (server.answers, server.beats) == ({}, [])
    assert 1 <= server.polls <= 3


def test_a_server_that_answers_at_once_without_work_is_not_asked_all_the_time(server: SessionServer) -> None:
    with served(server):
        time.sleep(1.5)
    assert 1 <= server.polls <= 3


@pytest.mark.parametrize("answer", [(500, {"error": {}}), (503, None), (502, "<html>")])
def test_a_server_in_trouble_is_asked_again_until_it_has_the_answer(server: SessionServer, answer: Any) -> None:
    server.offer("Add", a=2, b=2)
    server.troubles.append(_first(2, "", answer))
    server.troubles.append(_first(2, "/response", answer))
    with served(server):
        assert server.answered()["result"] == 4


@pytest.mark.parametrize("path", ["/heartbeat", "/response", "PROCESSING"])
def test_while_a_call_is_held_the_server_is_asked_as_often_as_heartbeats_are_due(
    server: SessionServer, path: str
) -> None:
    server.offer("Circumstances")
    server.pending[0]["requires"] = {"secrets": ["MAPS"], "authorization": [], "userId": True}
    server.context = {"secrets": {"MAPS": "s3"}, "authorization": {}, "userId": "ana"}
    server.troubles.append(_first(6, path, (503, None)))
    with served(server):
        assert server.answered(seconds=4)["secret"] == "s3"


def test_who_is_told_to_stop_does_not_wait_for_a_server_that_is_away(server: SessionServer) -> None:
    server.offer("Add", a=2, b=3)
    server.troubles.append(_for("/heartbeat", (503, None)))
    with served(server) as stop:
        _until(lambda: server.polls == 1)
        stop.set()
        _until(lambda: server.closed == ["s-1"])


def test_a_session_that_the_server_forgot_is_opened_anew(server: SessionServer) -> None:
    with served(server):
        _until(lambda: len(server.opened) == 1)
        server.opened.append({"serves": ["Somebody else"]})
        server.offer("Add", a=2, b=2)
        assert server.answered()["result"] == 4
    assert len(server.opened) == 3


def test_an_answer_that_the_server_cannot_take_becomes_an_error(server: SessionServer) -> None:
    server.offer("Add", a=2, b=2)
    server.troubles.append(_for("/response", (413, {"error": {"message": "The body is larger than 1000000 bytes"}})))
    with served(server):
        told = server.answered()
    assert (told["state"], told["developerMessage"]) == ("ERROR", "The body is larger than 1000000 bytes")


def test_who_is_told_to_stop_finishes_what_runs_and_takes_nothing_more(server: SessionServer) -> None:
    server.offer("Waits")
    with served(server) as stop:
        assert running.wait(10)
        stop.set()
        time.sleep(0.3)
        server.offer("Add", id="r-2", a=1, b=1)
        assert server.closed == []
        gate.set()
        assert server.answered()["result"] == "through"
        _until(lambda: server.closed == ["s-1"])
    assert "r-2" not in server.answers


@pytest.mark.parametrize(("status", "message"), [(401, "The key is not known"), (403, "You need 'serve'"), (404, "No")])
def test_a_refusal_for_good_is_said_and_ends_it(server: SessionServer, status: int, message: str) -> None:
    server.troubles.append(_for("", (status, {"error": {"message": message}})))
    with pytest.raises(ServingError, match=message):
        placet.serve(toolkit, server.url, "the-key")


@pytest.mark.parametrize("url", ["placet.example", "ftp://placet.example", "http://", "https://x/?a=1"])
def test_an_address_that_is_none_is_said_at_once(url: str) -> None:
    with pytest.raises(ValueError, match="not the http or https address"):
        placet.serve(toolkit, url, "the-key")


def test_a_toolkit_without_tools_is_said_at_once() -> None:
    with pytest.raises(ToolkitError, match="nothing to serve"):
        placet.serve(toolkit, "http://127.0.0.1:1", "the-key", tools=[])


def _for(part: str, answer: Any) -> Callable[[str, str], Any]:
    return lambda method, path: answer if part in path and method != "DELETE" else None


def _first(times: int, part: str, answer: Any) -> Callable[[str, str], Any]:
    left = [times]

    def trouble(method: str, path: str) -> Any:
        if part in path and left[0]:
            left[0] -= 1
            return answer
        return None

    return trouble


def _until(holds: Callable[[], bool], seconds: float = 10) -> None:
    deadline = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.01)
