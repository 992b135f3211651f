"""The mcp runtime: both eras of the protocol, what becomes of results and errors, and servers that mean no good."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from execution.cancel import Cancel
from execution.credentials import Credentials
from execution.errors import ErrorCode
from execution.runtimes import mcpsession
from tests.runtimes.mcpkit import failed, fresh, run, server
from tests.runtimes.webkit import TRACEPARENT
from tests.services.mcpserver import MODERN, FakeMcp, plainly, refuse, says, streams
from tests.services.server import free_port, running, scratch
from tests.services.toolserver import answer, hang

pytestmark = pytest.mark.usefixtures("fresh")
__all__ = ["fresh", "server"]

EXAMPLE = Path(__file__).parents[2] / "examples" / "mcp_server" / "server.py"
TEXT = [{"type": "text", "text": "done"}]
DONE = {"id": "?", "result": {"content": TEXT}}


# A real server, made with the official SDK.


@pytest.fixture(scope="module")
def official() -> Iterator[str]:
    from socket import create_connection

    port = free_port()

    def is_ready() -> bool:
        with suppress(OSError), create_connection(("127.0.0.1", port), timeout=1):
            return True
        return False

    with scratch("mcp") as (folder, reaper):
        command: list[str | Path] = [sys.executable, EXAMPLE, "--port", str(port)]
        with running(command, reaper=reaper, log=folder / "log", is_ready=is_ready):
            yield f"http://127.0.0.1:{port}/mcp"


@pytest.fixture(params=["modern", "legacy"])
def sdk(request: pytest.FixtureRequest, official: str, monkeypatch: pytest.MonkeyPatch) -> str:
    """The official server, spoken to in each of its eras."""
    if request.param == "legacy":
        monkeypatch.setattr(mcpsession, "_open", mcpsession._greet)
    return official


def test_the_official_server_is_called_in_both_eras(sdk: str) -> None:
    counted = run(sdk, "count", schema={"type": "object"}, arguments={"text": "two words"})
    assert counted.value == {"letters": 8, "words": 2}
    assert counted.traffic.sent > 0
    assert run(sdk, "shout", schema={"type": "string"}, arguments={"text": "ä b"}).value == "Ä B"
    (picture,) = run(sdk, "pixel", arguments={}).content
    assert (picture["type"], picture["mimeType"]) == ("image", "image/png")
    assert len(mcpsession._sessions) == 1


def test_the_official_servers_errors_and_progress_come_through(sdk: str) -> None:
    error = failed(sdk, tool="shout", arguments={"text": " "}, schema={"type": "string"})
    assert (error.code, error.failure.can_retry) == (ErrorCode.EXECUTION_FAILED, True)
    assert "There is nothing to shout" in error.failure.message
    assert failed(sdk, tool="nothing").code is ErrorCode.UNSUPPORTED_TOOL
    news: list[Any] = []
    spelled = run(sdk, "spell", schema={"type": "string"}, arguments={"text": "abc"}, on_news=news.append)
    assert spelled.value == "a-b-c"
    assert [(told["done"], told["total"]) for told in news] == [(1, 3), (2, 3), (3, 3)]


def test_the_official_server_is_left_when_time_is_up(sdk: str) -> None:
    run(sdk, "spell", schema={"type": "string"}, arguments={"text": "a"})
    began = time.monotonic()
    error = failed(sdk, tool="spell", arguments={"text": "x" * 200}, timeout=0.4)
    assert (error.code, error.is_sent) == (ErrorCode.TIMEOUT, True)
    assert time.monotonic() - began < 3


# The wire.


def test_a_legacy_server_is_greeted_once_and_its_session_kept(server: FakeMcp) -> None:
    for _ in range(3):
        assert run(server.endpoint).content == tuple(TEXT)
    (hello,) = server.asked("initialize")
    assert hello.json["params"]["protocolVersion"] == "2025-11-25"
    assert hello.headers["Accept"] == "application/json, text/event-stream"
    (ready,) = server.asked("notifications/initialized")
    assert (ready.headers["Mcp-Session-Id"], ready.headers["MCP-Protocol-Version"]) == ("session-1", "2025-11-25")
    called = server.asked("tools/call")
    assert {asked.headers["Mcp-Session-Id"] for asked in called} == {"session-1"}
    assert called[0].json["params"]["name"] == "thing"
    assert called[0].json["params"]["arguments"] == {"query": "äöü", "n": 1}
    assert len({asked.json["id"] for asked in called}) == 3


def test_a_modern_server_gets_everything_with_each_request_and_no_greeting(server: FakeMcp) -> None:
    server.is_modern, server.is_legacy = True, False
    inner = {"type": "object", "properties": {"deep": {"type": "string", "x-mcp-header": "Deep"}}}
    described = {"n": {"type": "integer", "x-mcp-header": "Count"}, "inner": inner}
    server.pages[0][0]["inputSchema"] = {"type": "object", "properties": described}
    run(server.endpoint, traceparent=TRACEPARENT, arguments={"n": 3, "inner": {"deep": "ä"}, "x": 1})
    (asked,) = server.asked("tools/call")
    meta = asked.json["params"]["_meta"]
    assert meta["io.modelcontextprotocol/protocolVersion"] == MODERN
    assert meta["io.modelcontextprotocol/clientCapabilities"] == {}
    assert meta["traceparent"] == TRACEPARENT
    assert (asked.headers["MCP-Protocol-Version"], asked.headers["Mcp-Method"]) == (MODERN, "tools/call")
    assert asked.headers["Mcp-Name"] == "thing"
    assert (asked.headers["Mcp-Param-Count"], asked.headers["Mcp-Param-Deep"]) == ("3", "=?base64?w6Q=?=")
    assert asked.headers["Mcp-Session-Id"] is None
    assert server.asked("initialize") == []


def test_a_server_without_sessions_gets_none(server: FakeMcp) -> None:
    server.sessions = None
    run(server.endpoint)
    assert server.asked("tools/call")[0].headers["Mcp-Session-Id"] is None


@pytest.mark.parametrize("version", ["2025-06-18", "2025-03-26"])
def test_an_older_version_that_the_server_prefers_is_spoken(server: FakeMcp, version: str) -> None:
    server.version = version
    run(server.endpoint)
    assert server.asked("tools/call")[0].headers["MCP-Protocol-Version"] == version


@pytest.mark.parametrize("version", ["1999-01-01", "2024-11-05", MODERN, 7, None])
def test_a_version_that_we_do_not_speak_ends_it(server: FakeMcp, version: Any) -> None:
    server.version = version
    error = failed(server.endpoint)
    assert (error.code, error.is_sent) == (ErrorCode.RUNTIME_INVALID, False)
    assert server.asked("tools/call") == []


def test_a_forgotten_session_is_opened_anew_once(server: FakeMcp) -> None:
    run(server.endpoint)
    assert server.sessions is not None
    server.sessions.clear()
    assert run(server.endpoint).content == tuple(TEXT)
    assert server.opened == 2
    server.call = refuse(-32600, "Session not found", 404)
    error = failed(server.endpoint)
    assert (error.code, server.opened) == (ErrorCode.EXECUTION_FAILED, 3)


def test_credentials_are_sent_with_every_request_and_each_has_its_own_session(server: FakeMcp) -> None:
    run(server.endpoint, credentials=Credentials(headers={"Authorization": "Bearer one"}))
    run(server.endpoint, credentials=Credentials(headers={"Authorization": "Bearer two"}))
    sent = [asked.headers["Authorization"] for asked in server.server.asked]
    assert set(sent) == {"Bearer one", "Bearer two"}
    assert server.opened == 2


@pytest.mark.parametrize("end", ["\n\n", "\r\n\r\n", "\r\r"])
def test_an_answer_at_the_end_of_a_stream_is_read_as_soon_as_it_is_there(server: FakeMcp, end: str) -> None:
    noise = [": still here\n\n", "id: 1\ndata:\n\n" if end == "never" else "id: 1\n\n", "retry: 5\n\n"]
    other = {"id": "another", "result": {"content": []}}
    log = {"method": "notifications/message", "params": {"level": "info", "data": "half way"}}
    progress = {"method": "notifications/progress", "params": {"progressToken": "!", "progress": 1, "total": 2}}
    server.call = streams(*noise, log, progress, other, DONE, end=end, is_open=True)
    news: list[Any] = []
    began = time.monotonic()
    assert run(server.endpoint, on_news=news.append).content == tuple(TEXT)
    assert time.monotonic() - began < 3
    assert [told["kind"] for told in news] == ["log", "progress"]


def test_questions_of_the_server_are_answered_with_no_and_a_ping_with_yes(server: FakeMcp) -> None:
    questions = [{"id": 7, "method": "sampling/createMessage", "params": {}}, {"id": 8, "method": "ping"}]
    server.call = streams(*questions, DONE)
    assert run(server.endpoint).content == tuple(TEXT)
    replies = {asked.json["id"]: asked.json for asked in server.server.asked if "method" not in asked.json}
    assert replies[7]["error"]["code"] == -32601
    assert replies[8]["result"] == {}


def test_a_cancelled_call_is_left_at_once_and_the_server_is_told(server: FakeMcp) -> None:
    server.call = plainly(hang())
    run_cancel = Cancel()
    threading.Timer(0.4, run_cancel.set).start()
    began = time.monotonic()
    error = failed(server.endpoint, cancel=run_cancel, timeout=20.0)
    assert (error.code, error.is_sent) == (ErrorCode.CANCELED, True)
    assert time.monotonic() - began < 3
    until = time.monotonic() + 5
    while not server.asked("notifications/cancelled") and time.monotonic() < until:
        time.sleep(0.02)
    (told,) = server.asked("notifications/cancelled")
    assert told.json["params"]["requestId"] == server.asked("tools/call")[0].json["id"]


# Results.


@pytest.mark.parametrize(
    ("schema", "result", "value"),
    [
        ({"type": "object"}, {"structuredContent": {"n": 1}, "content": TEXT}, {"n": 1}),
        ({"type": "integer"}, {"structuredContent": {"result": 5}, "content": TEXT}, 5),
        ({"properties": {"result": {}}}, {"structuredContent": {"result": 5}}, {"result": 5}),
        ({"type": "string"}, {"content": TEXT}, "done"),
        ({"type": "string"}, {"content": [*TEXT, {"type": "text", "text": "twice"}]}, "done\ntwice"),
        ({"type": "object"}, {"content": [{"type": "text", "text": '{"n": 1}'}]}, {"n": 1}),
        ({"type": "object"}, {"content": [{"type": "text", "text": "no json"}]}, "no json"),
    ],
)
def test_what_a_tool_with_an_output_schema_returns_is_its_value(
    server: FakeMcp, schema: Any, result: Any, value: Any
) -> None:
    server.call = says(**result)
    returned = run(server.endpoint, schema=schema)
    assert (returned.value, returned.content) == (value, ())


def test_blocks_of_every_kind_become_content(server: FakeMcp) -> None:
    blocks = [
        {"type": "text", "text": "hello"},
        {"type": "image", "data": "aGk=", "mimeType": "image/png"},
        {"type": "audio", "data": "aGk=", "mimeType": "audio/wav"},
        {"type": "resource_link", "uri": "file:///a", "name": "a"},
        {"type": "resource", "resource": {"uri": "file:///a", "text": "a"}},
        {"type": "resource", "resource": {"uri": "file:///b", "blob": "aGk="}},
    ]
    server.call = says(content=blocks, structuredContent={"n": 1})
    assert run(server.endpoint).content == tuple(blocks)


@pytest.mark.parametrize(
    "result",
    [
        {"content": "text"},
        {"content": [1]},
        {"content": [{"type": "video", "data": "x"}]},
        {"content": [{"type": "text"}]},
        {"content": [{"type": ["text"], "text": "x"}]},
        {"content": [{"type": "image", "data": 1, "mimeType": "x"}]},
        {"content": [{"type": "resource", "resource": {"uri": "a"}}]},
        {"content": [{"type": "resource"}]},
        {"content": TEXT * 201},
        {"resultType": "input_required", "inputRequests": {}},
        {"resultType": "task", "taskId": "t"},
        {"resultType": {}},
    ],
)
def test_a_result_that_is_none_is_a_failure(server: FakeMcp, result: Any) -> None:
    server.call = says(**result)
    error = failed(server.endpoint)
    assert error.code is ErrorCode.EXECUTION_FAILED
    assert error.failure.developer_message


@pytest.mark.parametrize(
    ("code", "told", "can_retry"),
    [
        (-32601, ErrorCode.UNSUPPORTED_TOOL, False),
        (-32602, ErrorCode.INVALID_INPUT, False),
        (-32603, ErrorCode.EXECUTION_FAILED, True),
        (-32021, ErrorCode.RUNTIME_INVALID, False),
        (-32042, ErrorCode.EXECUTION_FAILED, False),
        (1, ErrorCode.EXECUTION_FAILED, False),
    ],
)
@pytest.mark.parametrize("status", [200, 400])
def test_errors_of_the_protocol_are_told_in_our_words(
    server: FakeMcp, code: int, told: ErrorCode, can_retry: bool, status: int
) -> None:
    server.call = refuse(code, "not so", status)
    error = failed(server.endpoint)
    assert (error.code, error.failure.can_retry, error.failure.message) == (told, can_retry, "not so")
    assert error.failure.details["jsonrpc_code"] == code
    assert error.is_sent


@pytest.mark.parametrize(
    ("status", "code", "can_retry"),
    [
        (401, ErrorCode.AUTH_INVALID, False),
        (403, ErrorCode.AUTH_FORBIDDEN, False),
        (429, ErrorCode.EXECUTION_FAILED, True),
        (503, ErrorCode.EXECUTION_FAILED, True),
        (400, ErrorCode.EXECUTION_FAILED, False),
    ],
)
def test_statuses_are_told_as_for_every_web_tool(
    server: FakeMcp, status: int, code: ErrorCode, can_retry: bool
) -> None:
    server.call = plainly(answer("no", status))
    error = failed(server.endpoint)
    assert (error.code, error.failure.can_retry) == (code, can_retry)


@pytest.mark.parametrize("status", [401, 503])
def test_a_server_that_does_not_let_us_in_has_not_called_the_tool(server: FakeMcp, status: int) -> None:
    server.server.answers["/mcp"] = answer("no", status)
    assert not failed(server.endpoint).is_sent
