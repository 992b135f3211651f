"""The bridge of desktop clients: lines become requests with the right headers, and answers become lines."""

from __future__ import annotations

import threading
import time

from tests.placet.stub import (
    INITIALIZE,
    INITIALIZED,
    KEY,
    MODERN,
    Old,
    Open,
    Says,
    Seen,
    connect,
    event,
    request,
    result,
    until,
)


def test_the_older_wire_keeps_its_session_and_version(opened: Open) -> None:
    desk, stub = opened(Old())
    connect(desk)
    assert desk.ask("tools/list", 1)["result"] == {"of": "tools/list"}
    first, told, listed = (seen.headers for seen in stub.seen if seen.verb == "POST")
    assert "mcp-session-id" not in first
    assert "mcp-protocol-version" not in first
    assert first["accept"] == "application/json, text/event-stream"
    for headers in (told, listed):
        assert (headers["mcp-session-id"], headers["mcp-protocol-version"]) == ("session-1", "2025-11-25")
        assert "mcp-method" not in headers
    assert {seen.headers["authorization"] for seen in stub.seen} == {f"Bearer {KEY}"}


def test_what_is_sent_before_the_handshake_is_answered_waits_for_it(opened: Open) -> None:
    server = Old()

    def slow(seen: Seen) -> Says:
        if seen.method == "initialize":
            time.sleep(0.3)
        return server(seen)

    desk, stub = opened(slow)
    desk.send(request("initialize", 0, **INITIALIZE), INITIALIZED, request("tools/list", 1))
    assert [desk.hear()["id"], desk.hear()["result"]] == [0, {"of": "tools/list"}]
    (told,) = stub.of("notifications/initialized")
    assert told.headers["mcp-session-id"] == "session-1"


def test_the_modern_wire_repeats_in_headers_what_the_body_says(opened: Open) -> None:
    desk, stub = opened(lambda seen: result(seen, {}))
    desk.ask("server/discover", 1, _meta=MODERN)
    desk.ask("tools/call", 2, _meta=MODERN, name="Mail_Send", arguments={})
    desk.ask("tools/call", 3, _meta=MODERN, name="größer", arguments={})
    desk.ask("tasks/get", 4, _meta=MODERN, taskId="t-1")
    desk.ask("resources/read", 5, _meta=MODERN, uri="test://x")
    said = [(seen.headers["mcp-method"], seen.headers.get("mcp-name")) for seen in stub.seen]
    assert said == [
        ("server/discover", None),
        ("tools/call", "Mail_Send"),
        ("tools/call", "=?base64?Z3LDtsOfZXI=?="),
        ("tasks/get", "t-1"),
        ("resources/read", "test://x"),
    ]
    assert {seen.headers["mcp-protocol-version"] for seen in stub.seen} == {"2026-07-28"}
    assert all("mcp-session-id" not in seen.headers for seen in stub.seen)


def test_a_message_passes_through_as_it_was_written(opened: Open) -> None:
    body = b'{"jsonrpc":"2.0","id":7,"result":{"n":1.10,"big":123456789012345678901234567890,"s":"\\u00e9\xc3\xa9"}}'
    desk, _ = opened(lambda seen: Says(body))
    desk.send(request("tools/list", 7))
    assert desk.hear_line() == body + b"\n"


def test_an_answer_over_several_lines_becomes_one(opened: Open) -> None:
    desk, _ = opened(lambda seen: Says(b'{\n "jsonrpc": "2.0",\n "id": 1, "result": {"text": "a\\nb"}\n}'))
    assert desk.ask("tools/list")["result"] == {"text": "a\nb"}


def test_every_message_of_a_stream_is_a_line_and_comments_are_none(opened: Open) -> None:
    progress = {"jsonrpc": "2.0", "method": "notifications/progress", "params": {"progress": 1, "progressToken": "p"}}

    def answers(seen: Seen) -> Says:
        final = {"jsonrpc": "2.0", "id": seen.body["id"], "result": {"done": True}}
        split = 'data: {"jsonrpc": "2.0",\ndata:  "method": "notifications/message", "params": {}}\n\n'
        return Says(events=["id: 1\ndata:\n\n", ": hello\n\n", event(progress), split, event(final, "2")])

    desk, _ = opened(answers)
    desk.send(request("tools/call", 1, name="x"))
    told = [desk.hear() for _ in range(3)]
    assert told[0] == progress
    assert told[1]["method"] == "notifications/message"
    assert told[2]["result"] == {"done": True}
    assert desk.hears_nothing()


def test_requests_run_side_by_side(opened: Open) -> None:
    gate = threading.Event()

    def answers(seen: Seen) -> Says:
        if seen.body["id"] == "slow":
            gate.wait(10)
        return result(seen, {})

    desk, _ = opened(answers)
    desk.send(request("tools/call", "slow"), *(request("tools/call", number) for number in range(10)))
    assert {desk.hear()["id"] for _ in range(10)} == set(range(10))
    gate.set()
    assert desk.hear()["id"] == "slow"


def test_a_cancelled_request_of_the_modern_wire_closes_its_stream_and_is_never_answered(opened: Open) -> None:
    forever = threading.Event()

    def answers(seen: Seen) -> Says:
        if seen.method == "tools/call":
            return Says(events=[": begun\n\n"], until=forever)
        return result(seen, {})

    desk, stub = opened(answers)
    desk.send(request("tools/call", 5, _meta=MODERN, name="slow"))
    assert until(lambda: len(stub.seen) == 1)
    desk.send({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 5}})
    assert stub.gone.wait(5)
    assert desk.ask("tools/list", 6, _meta=MODERN)["id"] == 6
    assert desk.hears_nothing()
    assert stub.of("notifications/cancelled") == []
    forever.set()


def test_a_cancelled_request_of_the_older_wire_is_told_to_the_server(opened: Open) -> None:
    done = threading.Event()

    def slow(seen: Seen) -> Says:
        done.wait(10)
        return result(seen, {"too": "late"})

    desk, stub = opened(Old(tools_call=slow))
    connect(desk)
    desk.send(request("tools/call", 5, name="slow"))
    assert until(lambda: bool(stub.of("tools/call")))
    desk.send({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 5}})
    assert until(lambda: bool(stub.of("notifications/cancelled")))
    done.set()
    assert desk.hears_nothing()


def test_a_lost_session_is_opened_again_with_the_clients_own_initialize(opened: Open) -> None:
    old = Old()
    desk, stub = opened(old)
    connect(desk)
    assert until(lambda: bool(stub.of("notifications/initialized")))
    old.sessions.append("another life")  # as after a restart that forgot all sessions
    desk.send(*(request("tools/list", number) for number in range(4)))
    assert {desk.hear()["id"] for _ in range(4)} == set(range(4))
    again = stub.of("initialize")
    assert len(again) == 2  # one for all four
    assert again[1].body["params"] == INITIALIZE
    assert again[1].body["id"] != again[0].body["id"]
    assert len(stub.of("notifications/initialized")) == 2
    assert desk.ask("tools/list", 9)["result"] == {"of": "tools/list"}
    assert stub.seen[-1].headers["mcp-session-id"] == "session-3"


def test_the_older_wires_stream_brings_what_the_server_says_unasked(opened: Open) -> None:
    changed = {"jsonrpc": "2.0", "method": "notifications/tools/list_changed"}
    hold = threading.Event()
    old = Old()

    def stream(seen: Seen) -> Says:
        if "last-event-id" in seen.headers:
            return Says(events=[event(changed, "8")], until=hold)
        return Says(events=["retry: 10\n\n", event(changed, "7")])

    old.stream = stream
    desk, stub = opened(old)
    connect(desk)
    assert [desk.hear() for _ in range(2)] == [changed, changed]
    streams = [seen.headers for seen in stub.seen if seen.verb == "GET"]
    assert streams[0]["accept"] == "text/event-stream"
    assert streams[0]["mcp-session-id"] == "session-1"
    assert streams[1]["last-event-id"] == "7"
    hold.set()


def test_a_request_of_the_server_gets_the_clients_answer(opened: Open) -> None:
    asked = {"jsonrpc": "2.0", "id": "s-1", "method": "elicitation/create", "params": {"message": "Who?"}}
    answered = threading.Event()

    def call(seen: Seen) -> Says:
        final = {"jsonrpc": "2.0", "id": seen.body["id"], "result": {}}
        return Says(events=[event(asked), event(final)])

    desk, stub = opened(Old(tools_call=call))
    connect(desk)
    desk.send(request("tools/call", 3, name="x"))
    assert desk.hear() == asked
    assert desk.hear()["id"] == 3
    desk.send({"jsonrpc": "2.0", "id": "s-1", "result": {"action": "accept"}})
    assert until(lambda: stub.seen[-1].body == {"jsonrpc": "2.0", "id": "s-1", "result": {"action": "accept"}})
    assert stub.seen[-1].headers["mcp-session-id"] == "session-1"
    answered.set()


def test_parameters_that_a_tool_wants_in_headers_are_repeated_there(opened: Open) -> None:
    schema = {
        "type": "object",
        "properties": {
            "region": {"type": "string", "x-mcp-header": "Region"},
            "to": {"type": "object", "properties": {"dry": {"type": "boolean", "x-mcp-header": "Dry-Run"}}},
            "note": {"type": "string"},
        },
    }

    def answers(seen: Seen) -> Says:
        if seen.method == "tools/list":
            return result(seen, {"tools": [{"name": "Ship_Send", "inputSchema": schema}]})
        if "mcp-param-region" not in seen.headers:
            refusal = {"code": -32020, "message": "Mcp-Param-Region is missing"}
            return Says({"jsonrpc": "2.0", "id": seen.body["id"], "error": refusal}, status=400)
        return result(seen, {"sent": True})

    arguments = {"region": "Köln", "to": {"dry": True}, "note": "x"}
    desk, stub = opened(answers)
    assert desk.ask("tools/call", 1, _meta=MODERN, name="Ship_Send", arguments=arguments)["result"] == {"sent": True}
    assert [seen.method for seen in stub.seen] == ["tools/call", "tools/list", "tools/call"]
    headers = stub.seen[-1].headers
    assert (headers["mcp-param-region"], headers["mcp-param-dry-run"]) == ("=?base64?S8O2bG4=?=", "true")
    assert "mcp-param-note" not in headers
    desk.ask("tools/call", 2, _meta=MODERN, name="Ship_Send", arguments=arguments)
    assert len(stub.seen) == 4  # learned once
