"""Calls that take their time: progress and log lines as they come, patience, and calls that are given up."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import pytest
from django.contrib.auth.models import User
from django.db import connection

from execution.cancel import waking
from execution.models import Call, State
from execution.protocols.mcp import calling
from execution.runtimes.base import Invocation, RunResult
from tests.mcp.desk import DESK, a_worker, modern_call, soon
from tests.mcp.taskkit import LEGACY, MODERN, TASKS, LegacyClient, ModernClient, post
from tests.protocols.toolkits import Hands

if TYPE_CHECKING:
    from policy.agents import NewAgent

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("threads_of_our_own")]
LEVEL = "io.modelcontextprotocol/logLevel"
CALL_ID = "placet.dev/call_id"


@pytest.fixture
def hands(monkeypatch: pytest.MonkeyPatch) -> Hands:
    from execution.pipeline import perform

    fake = Hands()
    monkeypatch.setattr(perform, "runtime_for", lambda tool: fake)
    return fake


@pytest.fixture
def robot() -> NewAgent:
    from policy import agents
    from registry import manifests, publishing

    author = User.objects.create_user("author")
    publishing.publish(manifests.import_manifest(DESK, by=author).version, by=author)
    return agents.create("robot", actor="shell", call=["Desk"])


@pytest.fixture
def worker(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[threading.Thread]]:
    with a_worker(monkeypatch) as threads:
        yield threads


def events(pieces: Iterator[bytes]) -> Iterator[dict[str, Any]]:
    """The messages of a stream as they come."""
    for piece in pieces:
        for line in piece.decode().splitlines():
            if line.startswith("data:") and line[5:].strip():
                yield json.loads(line[5:])


class Tool:
    """A tool in the test's hands: says what it is told to, and ends when it may."""

    def __init__(self, *steps: tuple[str, Any]) -> None:
        self.steps = steps
        self.go_on = threading.Event()
        self.has_begun = threading.Event()
        self.was_cancelled = threading.Event()

    def run(self, invocation: Invocation) -> RunResult:
        self.has_begun.set()
        for kind, said in self.steps:
            if kind == "progress":
                done, total, message = said
                invocation.on_news({"kind": "progress", "done": done, "total": total, "message": message})
            else:
                invocation.on_news({"kind": "log", "level": kind, "message": said})
        with waking(invocation.cancel, self.go_on.set):
            assert self.go_on.wait(20)
        if invocation.cancel.is_set():
            self.was_cancelled.set()
            from execution.errors import CallError, ErrorCode

            raise CallError(ErrorCode.CANCELED, "The call was cancelled while it ran")
        return RunResult(value={"done": True})


STEPS = (("progress", (0, 100, "")), ("progress", (50, 100, "half")), ("progress", (40, 100, "")))


def legacy_call(client: LegacyClient, id: int, meta: dict[str, Any]) -> Any:
    params = {"name": "Desk_Slow", "arguments": {}, "_meta": meta}
    return post(client.key, id, "tools/call", params, client.headers)


@pytest.mark.parametrize("version", [MODERN, LEGACY])
@pytest.mark.parametrize("token", ["a token", 0])
def test_progress_comes_while_the_tool_runs_and_only_forwards(
    robot: NewAgent, hands: Hands, worker: list[Any], version: str, token: str | int
) -> None:
    tool = Tool(*STEPS, ("progress", (99.5, None, "")))
    hands.overrides["Desk_Slow"] = tool.run
    meta = {"progressToken": token}
    if version == MODERN:
        response = modern_call(robot.key, "Desk_Slow", {}, meta)
    else:
        response = legacy_call(LegacyClient(robot.key), 5, meta)
    assert response.headers["Content-Type"] == "text/event-stream"
    messages = events(response.streaming_content)
    told = [next(messages) for _ in range(3)]
    assert Call.objects.get().state == State.RUNNING  # it is still at it
    assert [message["method"] for message in told] == ["notifications/progress"] * 3
    assert [message["params"] for message in told] == [
        {"progressToken": token, "progress": 0, "total": 100},
        {"progressToken": token, "progress": 50, "total": 100, "message": "half"},
        {"progressToken": token, "progress": 99.5},
    ]
    tool.go_on.set()
    (last,) = messages
    assert last["result"]["structuredContent"] == {"done": True}


@pytest.mark.parametrize("version", [MODERN, LEGACY])
def test_without_a_token_nobody_is_told_of_progress(
    robot: NewAgent, hands: Hands, worker: list[Any], version: str
) -> None:
    tool = Tool(*STEPS)
    tool.go_on.set()
    hands.overrides["Desk_Slow"] = tool.run
    client = ModernClient(robot.key) if version == MODERN else LegacyClient(robot.key)
    answer = client.call("Desk_Slow", {})
    assert answer.headers["Content-Type"] == "application/json"
    assert answer.result["structuredContent"] == {"done": True}


def test_lines_of_the_level_that_the_session_set_and_above_are_told(
    robot: NewAgent, hands: Hands, worker: list[Any]
) -> None:
    tool = Tool(("debug", "d"), ("info", "i"), ("warning", "w"), ("error", "e"))
    tool.go_on.set()
    hands.overrides["Desk_Slow"] = tool.run
    client = LegacyClient(robot.key)

    def lines() -> list[tuple[str, str, str]]:
        notices = client.call("Desk_Slow", {}).notices
        assert {notice["method"] for notice in notices} == {"notifications/message"}
        told = [notice["params"] for notice in notices]
        return [(each["logger"], each["level"], each["data"]) for each in told]

    assert [level for _, level, _ in lines()] == ["info", "warning", "error"]
    assert client.send("logging/setLevel", {"level": "warning"}).result == {}
    assert lines() == [("Desk_Slow", "warning", "w"), ("Desk_Slow", "error", "e")]
    client.send("logging/setLevel", {"level": "debug"})
    assert len(lines()) == 4


def test_on_the_newer_wire_lines_are_told_only_to_a_request_that_names_a_level(
    robot: NewAgent, hands: Hands, worker: list[Any]
) -> None:
    tool = Tool(("info", "i"), ("error", "e"))
    tool.go_on.set()
    hands.overrides["Desk_Slow"] = tool.run
    client = ModernClient(robot.key)
    assert client.call("Desk_Slow", {}).notices == []
    (only,) = client.call("Desk_Slow", {}, _meta={LEVEL: "error"}).notices
    assert only["params"] == {"level": "error", "logger": "Desk_Slow", "data": "e"}
    assert client.call("Desk_Slow", {}, _meta={LEVEL: "loud"}).code == -32602


def test_what_a_tool_says_holds_no_secret_that_the_caller_brought(
    robot: NewAgent, hands: Hands, worker: list[Any]
) -> None:
    tool = Tool(("info", "the key is s3cret-0f-the-caller"), ("progress", (1, 2, "with s3cret-0f-the-caller")))
    tool.go_on.set()
    hands.overrides["Desk_Slow"] = tool.run
    context = {"secrets": [{"id": "KEY", "value": "s3cret-0f-the-caller"}]}
    meta = {"placet.dev/context": context, LEVEL: "debug", "progressToken": 1}
    answer = ModernClient(robot.key).call("Desk_Slow", {}, _meta=meta)
    assert len(answer.notices) == 2
    assert "s3cret" not in str(answer.notices)


def test_a_chatty_tool_is_told_of_so_often_and_its_last_word_always(
    robot: NewAgent, hands: Hands, worker: list[Any]
) -> None:
    tool = Tool(*(("progress", (number, 500, "")) for number in range(500)))
    tool.go_on.set()
    hands.overrides["Desk_Slow"] = tool.run
    began = time.monotonic()
    notices = ModernClient(robot.key).call("Desk_Slow", {}, _meta={"progressToken": "t"}).notices
    told = [notice["params"]["progress"] for notice in notices]
    assert told[-1] == 499
    assert told == sorted(set(told))
    assert len(told) <= 22 + 10 * (time.monotonic() - began)


def test_news_of_inline_tools_comes_before_their_answer(robot: NewAgent, hands: Hands) -> None:
    tool = Tool(*STEPS)
    tool.go_on.set()
    hands.overrides["Desk_Echo"] = tool.run
    answer = ModernClient(robot.key).call("Desk_Echo", {}, _meta={"progressToken": 7})
    assert [notice["params"]["progress"] for notice in answer.notices] == [0, 50]
    assert answer.result["structuredContent"] == {"done": True}


def test_a_client_of_the_newer_wire_that_hangs_up_cancels_its_call(
    robot: NewAgent, hands: Hands, worker: list[Any]
) -> None:
    tool = Tool(*STEPS)
    hands.overrides["Desk_Slow"] = tool.run
    response = modern_call(robot.key, "Desk_Slow", {}, {"progressToken": 1})
    next(events(response.streaming_content))
    response.close()
    assert tool.was_cancelled.wait(10)
    assert soon(lambda: Call.objects.get().state == State.CANCELLED)


def test_a_client_with_a_session_that_hangs_up_does_not(robot: NewAgent, hands: Hands, worker: list[Any]) -> None:
    tool = Tool(*STEPS)
    hands.overrides["Desk_Slow"] = tool.run
    response = legacy_call(LegacyClient(robot.key), 5, {"progressToken": 1})
    next(events(response.streaming_content))
    response.close()
    time.sleep(0.2)
    assert Call.objects.get().cancel_requested is False
    tool.go_on.set()
    assert soon(lambda: Call.objects.get().state == State.SUCCEEDED)


@pytest.mark.parametrize("is_named_rightly", [True, False])
def test_a_request_that_its_session_gives_up_is_cancelled_and_answered_no_more(
    robot: NewAgent, hands: Hands, worker: list[Any], is_named_rightly: bool
) -> None:
    tool = Tool(*STEPS)
    hands.overrides["Desk_Slow"] = tool.run
    client = LegacyClient(robot.key)
    response = legacy_call(client, 5, {"progressToken": 1})
    messages = events(response.streaming_content)
    assert [next(messages)["params"]["progress"] for _ in range(2)] == [0, 50]

    def give_up() -> None:
        try:
            named: int | str = 5 if is_named_rightly else "5"
            told = {"requestId": named, "reason": "no longer wanted"}
            assert post(client.key, None, "notifications/cancelled", told, client.headers).status_code == 202
        finally:
            connection.close()

    thread = threading.Thread(target=give_up)
    thread.start()
    thread.join(10)
    if is_named_rightly:
        assert list(messages) == []
        assert tool.was_cancelled.wait(10)
        assert soon(lambda: Call.objects.get().state == State.CANCELLED)
    else:
        tool.go_on.set()
        assert [message["result"]["isError"] for message in messages] == [False]


def test_nobody_cancels_a_request_of_another_session(robot: NewAgent, hands: Hands, worker: list[Any]) -> None:
    tool = Tool(*STEPS)
    hands.overrides["Desk_Slow"] = tool.run
    client, other = LegacyClient(robot.key), LegacyClient(robot.key)
    response = legacy_call(client, 5, {"progressToken": 1})
    messages = events(response.streaming_content)
    next(messages)
    post(other.key, None, "notifications/cancelled", {"requestId": 5}, other.headers)
    tool.go_on.set()
    assert [message["result"]["isError"] for message in messages if "result" in message] == [False]


@pytest.mark.parametrize("version", [MODERN, LEGACY])
def test_a_call_that_outlasts_our_patience_goes_on_and_can_be_asked_for_again(
    robot: NewAgent, hands: Hands, worker: list[Any], version: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(calling, "QUICK", 0.1)
    monkeypatch.setattr(calling, "PATIENCE", 0.3)
    tool = Tool()
    hands.overrides["Desk_Slow"] = tool.run
    client = ModernClient(robot.key) if version == MODERN else LegacyClient(robot.key)
    answer = client.call("Desk_Slow", {})
    assert answer.headers["Content-Type"] == "text/event-stream"
    assert answer.result["isError"] is True
    call_id = answer.result["_meta"][CALL_ID]
    assert f'_meta["{CALL_ID}"] = "{call_id}"' in answer.text
    tool.go_on.set()
    assert soon(lambda: Call.objects.get().state == State.SUCCEEDED)
    again = client.call("Desk_Slow", {}, _meta={CALL_ID: call_id})
    assert again.result["structuredContent"] == {"done": True}
    assert len(hands.runs) == 1


def test_whoever_asks_again_while_it_runs_hears_the_rest_of_it(
    robot: NewAgent, hands: Hands, worker: list[Any]
) -> None:
    tool = Tool(("progress", (1, 3, "")))
    hands.overrides["Desk_Slow"] = tool.run
    first = events(modern_call(robot.key, "Desk_Slow", {}, {"progressToken": 1, CALL_ID: "the one"}).streaming_content)
    next(first)
    second = modern_call(robot.key, "Desk_Slow", {}, {"progressToken": 2, CALL_ID: "the one"})
    hands.runs[0].on_news({"kind": "progress", "done": 2, "total": 3, "message": ""})
    tool.go_on.set()
    told = list(events(second.streaming_content))
    assert [each["params"] for each in told[:-1]] == [{"progressToken": 2, "progress": 2, "total": 3}]
    assert told[-1]["result"]["structuredContent"] == list(first)[-1]["result"]["structuredContent"] == {"done": True}
    assert len(hands.runs) == 1


def test_a_client_that_knows_tasks_is_given_one_instead_of_being_held(
    robot: NewAgent, hands: Hands, worker: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(calling, "QUICK", 0.1)
    monkeypatch.setattr(calling, "HANDOVER", 0.1)
    tool = Tool()
    hands.overrides["Desk_Slow"] = tool.run
    client = ModernClient(robot.key, TASKS)
    result = client.call("Desk_Slow", {}).result
    assert (result["resultType"], result["status"]) == ("task", "working")
    assert Call.objects.get().cancel_requested is False
    tool.go_on.set()
    assert soon(lambda: client.get(result["taskId"])["status"] == "completed")


def test_a_server_that_ends_lets_its_clients_go_and_their_calls_run_on(
    robot: NewAgent, hands: Hands, worker: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    tool = Tool(*STEPS)
    hands.overrides["Desk_Slow"] = tool.run
    told, cut = (modern_call(robot.key, "Desk_Slow", {}, {"progressToken": 1}) for _ in range(2))
    streams = [events(response.streaming_content) for response in (told, cut)]
    for messages in streams:
        next(messages)
    monkeypatch.setattr("execution.stopping.is_stopping", lambda: True)
    cut.close()
    last = list(streams[0])[-1]
    assert last["result"]["isError"] is True
    assert CALL_ID in last["result"]["_meta"]
    assert not Call.objects.filter(cancel_requested=True).exists()
    tool.go_on.set()
    assert soon(lambda: Call.objects.filter(state=State.SUCCEEDED).count() == 2)


def test_no_line_stays_open_after_an_answer(robot: NewAgent, hands: Hands, worker: list[Any]) -> None:
    from execution import bell

    tool = Tool(*STEPS)
    hands.overrides["Desk_Slow"] = tool.run
    tool.go_on.set()
    for client in (ModernClient(robot.key), LegacyClient(robot.key)):
        client.call("Desk_Slow", {}, _meta={"progressToken": 1})
        client.call("Desk_Nothing", {})
        client.call("Desk_Transfer", {})
    assert soon(lambda: bell._ears == {}, 2)
