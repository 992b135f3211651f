"""The bridge of desktop clients: lines become requests with the right headers, and answers become lines."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from placet.bridge.address import Address, Unusable
from placet.bridge.headers import encoded
from tests.placet.stub import MODERN, ROOT, Answers, Desk, Says, Seen, Stub, event, request, result

KEY = "plk_0123456789_a-key-of-this-test"
INITIALIZE = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "desk", "version": "1"}}
INITIALIZED = {"jsonrpc": "2.0", "method": "notifications/initialized"}
Open = Callable[..., tuple[Desk, Stub]]


@pytest.fixture
def key_file(tmp_path: Path) -> Path:
    path = tmp_path / "key"
    path.write_text(f"{KEY}\n")
    path.chmod(0o600)
    return path


@pytest.fixture
def opened(key_file: Path) -> Iterator[Open]:
    """A bridge and the server behind it."""
    desks: list[Desk] = []
    stubs: list[Stub] = []

    def make(answers: Answers, port: int = 0) -> tuple[Desk, Stub]:
        stubs.append(Stub(answers, port))
        desks.append(Desk(stubs[-1].port, "--key-file", str(key_file)))
        return desks[-1], stubs[-1]

    yield make
    for desk in desks:
        desk.end()
    for stub in stubs:
        stub.close()


class Old:
    """A server of the older wire with sessions that can be ended, and what a test adds to it."""

    def __init__(self, **methods: Callable[[Seen], Says]) -> None:
        self.sessions: list[str] = []
        self.methods = {name.replace("_", "/"): answer for name, answer in methods.items()}
        self.stream: Callable[[Seen], Says] = lambda seen: Says(status=405)

    def __call__(self, seen: Seen) -> Says:
        if seen.method == "initialize":
            self.sessions.append(f"session-{len(self.sessions) + 1}")
            headers = {"MCP-Session-Id": self.sessions[-1]}
            return result(seen, {"protocolVersion": "2025-11-25", "capabilities": {}}, headers=headers)
        if seen.headers.get("mcp-session-id") != self.sessions[-1]:
            return Says({"jsonrpc": "2.0", "error": {"code": -32600, "message": "no such session"}}, status=404)
        if seen.verb == "GET":
            return self.stream(seen)
        if seen.verb == "DELETE":
            return Says(status=204)
        if "id" not in seen.body or "method" not in seen.body:
            return Says(status=202)
        return self.methods.get(seen.method, lambda seen: result(seen, {"of": seen.method}))(seen)


def connect(desk: Desk) -> None:
    assert desk.ask("initialize", 0, **INITIALIZE)["result"]["protocolVersion"] == "2025-11-25"
    desk.send(INITIALIZED)


def until(holds: Callable[[], bool], seconds: float = 10) -> bool:
    deadline = time.monotonic() + seconds
    while not (is_true := holds()) and time.monotonic() < deadline:
        time.sleep(0.01)
    return is_true


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


def test_while_the_server_is_away_each_request_gets_a_clear_error_and_later_its_answer(opened: Open) -> None:
    desk, stub = opened(lambda seen: result(seen, {"ok": True}))
    assert desk.ask("ping", 1)["result"] == {"ok": True}
    stub.close()
    error = desk.ask("ping", 2)["error"]
    assert error == {
        "code": -32603,
        "message": f"http://127.0.0.1:{stub.port}/mcp cannot be reached: Connection refused",
        "data": {"sent": False},
    }
    back = Stub(lambda seen: result(seen, {"ok": "again"}), stub.port)
    try:
        assert desk.ask("ping", 3)["result"] == {"ok": "again"}
    finally:
        back.close()


def test_a_request_whose_connection_is_lost_is_told_that_it_may_have_been_carried_out(opened: Open) -> None:
    desk, _ = opened(lambda seen: Says(is_cut=True))
    error = desk.ask("tools/call", 4, name="pay")["error"]
    assert "was lost" in error["message"]
    assert "may have been carried out" in error["message"]
    assert error["data"] == {"sent": True}


def test_a_stream_that_ends_without_an_answer_is_an_error(opened: Open) -> None:
    desk, _ = opened(lambda seen: Says(events=[": hello\n\n"]))
    assert "before it was complete" in desk.ask("tools/call", 4, name="x")["error"]["message"]


def test_an_error_without_an_id_is_given_that_of_its_request(opened: Open) -> None:
    refusal = {"jsonrpc": "2.0", "id": None, "error": {"code": -32600, "message": "no"}}
    desk, _ = opened(lambda seen: Says(refusal, status=400))
    assert desk.ask("tools/call", "mine") == {**refusal, "id": "mine"}


@pytest.mark.parametrize(
    ("status", "said"),
    [
        (401, "does not know the key"),
        (403, "refuses this key"),
        (404, "There is no MCP at"),
        (302, "sends its callers elsewhere"),
        (503, "unavailable just now"),
        (500, "answered 500 and no JSON-RPC message"),
    ],
)
def test_a_refusal_that_is_no_message_becomes_one(opened: Open, status: int, said: str) -> None:
    desk, _ = opened(lambda seen: Says(b"<h1>no</h1>", status=status))
    error = desk.ask("tools/list", 1)["error"]
    assert said in error["message"]
    assert error["data"] == {"status": status}


def test_a_key_that_was_replaced_in_its_file_is_read_again(opened: Open, key_file: Path) -> None:
    def answers(seen: Seen) -> Says:
        return result(seen, {}) if seen.headers["authorization"] == "Bearer new-key" else Says(status=401)

    desk, stub = opened(answers)
    assert "error" in desk.ask("ping", 1)
    key_file.write_text("new-key")
    assert desk.ask("ping", 2)["result"] == {}
    assert len(stub.seen) == 3


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


def test_lines_that_are_no_message_are_answered_and_the_next_one_is_read(opened: Open) -> None:
    desk, stub = opened(lambda seen: result(seen, {}))
    desk.send(b"this is no JSON", b"[1, 2]", b"", b"[" * 100_000, request("ping", 1))
    codes = [desk.hear().get("error", {}).get("code") for _ in range(4)]
    assert codes == [-32700, -32600, -32700, None]
    assert len(stub.seen) == 1


def test_a_line_that_is_too_long_is_refused_and_the_next_one_is_read(opened: Open) -> None:
    desk, stub = opened(lambda seen: result(seen, {}))
    desk.send(b'{"x":"' + b"a" * 9_000_000 + b'"}', request("ping", 1))
    assert desk.hear()["error"]["code"] == -32600
    assert desk.hear()["id"] == 1
    assert len(stub.seen) == 1


def test_when_the_client_leaves_the_session_is_ended_and_nothing_stays(opened: Open) -> None:
    desk, stub = opened(Old())
    connect(desk)
    assert desk.close() == 0
    assert stub.seen[-1].verb == "DELETE"
    assert stub.seen[-1].headers["mcp-session-id"] == "session-1"


def test_answers_on_their_way_still_arrive_when_the_client_closes_its_end(opened: Open) -> None:
    def answers(seen: Seen) -> Says:
        time.sleep(0.3)
        return result(seen, {})

    desk, _ = opened(answers)
    desk.send(request("ping", 1))
    assert desk.close() == 0
    assert desk.hear()["id"] == 1


def test_a_request_that_never_ends_does_not_keep_the_bridge_alive(opened: Open) -> None:
    forever = threading.Event()
    desk, stub = opened(lambda seen: Says(events=[": begun\n\n"], until=forever))
    desk.send(request("tools/call", 1, _meta=MODERN, name="slow"))
    assert until(lambda: len(stub.seen) == 1)
    began = time.monotonic()
    assert desk.close() == 0
    assert time.monotonic() - began < 4
    assert stub.gone.wait(5)
    forever.set()


def test_asked_to_stop_it_ends_its_session_first(opened: Open) -> None:
    desk, stub = opened(Old())
    connect(desk)
    assert until(lambda: bool(stub.of("notifications/initialized")))
    desk.process.send_signal(signal.SIGTERM)
    assert desk.process.wait(timeout=10) == 0
    assert stub.seen[-1].verb == "DELETE"


def test_only_the_protocol_is_on_standard_output_and_the_key_is_nowhere(opened: Open, key_file: Path) -> None:
    desk, stub = opened(lambda seen: Says(status=401))
    desk.ask("tools/list", 1)
    command = Path(f"/proc/{desk.process.pid}/cmdline").read_bytes()
    desk.close()
    assert desk.told.startswith(b"placet mcp: ")
    assert KEY.encode() not in desk.told + command
    assert stub.seen[0].headers["authorization"] == f"Bearer {KEY}"


@pytest.mark.parametrize(
    ("url", "said"),
    [
        ("ftp://x", "must be written https://"),
        ("http://placet.example", "a key would travel unprotected"),
        ("https://me:pw@placet.example", "must hold no user"),
        ("https://placet.example/mcp?key=1", "must hold no user, no query"),
        ("https://placet.example:port", "not an address that can be read"),
        ("placet.example", "must be written https://"),
    ],
)
def test_an_address_that_cannot_be_used_is_refused_at_the_start(url: str, said: str) -> None:
    with pytest.raises(Unusable, match=said):
        Address.parse(url)


@pytest.mark.parametrize(
    ("url", "meant"),
    [
        ("https://placet.example", "https://placet.example:443/mcp"),
        ("http://localhost:8000/", "http://localhost:8000/mcp"),
        ("http://[::1]:8000/tools/mcp", "http://[::1]:8000/tools/mcp"),
    ],
)
def test_an_address_without_a_path_means_its_mcp(url: str, meant: str) -> None:
    assert str(Address.parse(url)) == meant


@pytest.mark.parametrize(
    ("content", "said"),
    [(None, "No such file"), (b"\n", "one key and nothing else"), (b"a\nb", "one key"), (b"\xff", "one")],
)
def test_a_key_file_that_holds_no_key_is_refused_at_the_start(tmp_path: Path, content: bytes | None, said: str) -> None:
    path = tmp_path / "key"
    if content is not None:
        path.write_bytes(content)
    command = [sys.executable, "-m", "placet", "mcp", "--url", "http://127.0.0.1:1", "--key-file", str(path)]
    ran = subprocess.run(command, cwd=ROOT, input=b"", capture_output=True, timeout=30)
    assert ran.returncode == 2
    assert ran.stdout == b""
    assert said in ran.stderr.decode()
    assert ran.stderr.count(b"\n") == 1


def test_a_key_that_others_can_read_is_warned_about(tmp_path: Path) -> None:
    path = tmp_path / "key"
    path.write_text(KEY)
    os.chmod(path, 0o644)
    command = [sys.executable, "-m", "placet", "mcp", "--url", "http://127.0.0.1:1", "--key-file", str(path)]
    ran = subprocess.run(command, cwd=ROOT, input=b"", capture_output=True, timeout=30)
    assert ran.returncode == 0
    assert "can be read by others" in ran.stderr.decode()


@pytest.mark.parametrize(
    "value", ["plain text", "Mail_Send", "=?base64", "a\tb", " padded", "=?base64?eA==?=", "", "é"]
)
def test_header_values_survive_the_way(value: str) -> None:
    import base64

    written = encoded(value)
    assert written.isascii()
    assert written == written.strip()
    wrapped = written.startswith("=?base64?") and written.endswith("?=")
    read = base64.b64decode(written[9:-2]).decode() if wrapped else written
    assert read == value


def test_the_bridge_uses_nothing_but_the_standard_library() -> None:
    code = "import sys, placet.cli; print(*{m.split('.')[0] for m in sys.modules})"
    ran = subprocess.run([sys.executable, "-S", "-c", code], cwd=ROOT, capture_output=True, text=True, timeout=30)
    assert ran.returncode == 0, ran.stderr
    foreign = {name for name in ran.stdout.split() if name not in sys.stdlib_module_names} - {"placet", "__main__"}
    assert {name for name in foreign if not name.startswith("_")} == set()


def test_a_parameter_that_is_wrong_type_is_left_to_the_server() -> None:
    from placet.bridge.headers import Mirrored

    mirrored: Any = Mirrored()
    for nonsense in (
        None,
        [],
        {"tools": None},
        {"tools": [1, {"name": 2}, {"name": "a", "inputSchema": {"properties": 3}}]},
    ):
        mirrored.learn(nonsense)
    mirrored.learn({"tools": [{"name": "b", "inputSchema": {"properties": {"x": {"x-mcp-header": "bad name"}}}}]})
    assert mirrored.headers({"name": "b", "arguments": {"x": "1"}}) == {}
    assert mirrored.headers({"name": "a", "arguments": None}) == {}
