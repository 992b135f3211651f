"""The bridge when something is wrong: with the server, with the client, with a line."""

from __future__ import annotations

import signal
import threading
import time
from pathlib import Path

import pytest

from tests.placet.stub import (
    KEY,
    MODERN,
    Old,
    Open,
    Says,
    Seen,
    Stub,
    connect,
    request,
    result,
    until,
)


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
    assert until(lambda: "GET" in [seen.verb for seen in stub.seen])  # it listens beside, as soon as it is connected
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
