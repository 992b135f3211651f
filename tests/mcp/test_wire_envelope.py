"""What is sent to /mcp is one JSON-RPC message, strictly read; whatever else comes is answered in the same form."""

from __future__ import annotations

from typing import Any

import pytest

from policy.agents import NewAgent
from tests.mcp.wire import BOTH, JSON, code, message, meta, modern, refusals, result, send, session

INVALID = {
    "a batch": [message("ping")],
    "an empty batch": [],
    "a long batch": [message("ping")] * 10_000,
    "a text": "ping",
    "null": None,
    "another version": {**message("ping"), "jsonrpc": "1.0"},
    "no version": {"method": "ping", "id": 1},
    "no method": {"jsonrpc": "2.0", "id": 1},
    "a number as method": message(7),  # type: ignore[arg-type]
    "an empty method": message(""),
    "a long method": message("x" * 201),
    "a null id": message("ping", id=None),
    "an id that is a truth": message("ping", id=True),
    "an id that is a fraction": message("ping", id=1.5),
    "an id that is an object": message("ping", id={}),
    "an id as long as a book": message("ping", id="x" * 1001),
    "a request without id": message("tools/call", {"name": "x"}, id=...),
    "a request and a response": {**message("ping"), "result": {}},
    "a result and an error": {"jsonrpc": "2.0", "id": 1, "result": {}, "error": {}},
    "a notification with an id": message("notifications/initialized"),
}


@pytest.mark.parametrize("what", INVALID)
def test_4_6_what_is_not_one_message_is_refused_with_400(robot: NewAgent, what: str) -> None:
    body = b"null" if INVALID[what] is None else INVALID[what]
    answer = send(body, robot, session(robot))
    assert (answer.status_code, code(answer)) == (400, -32600)
    assert refusals() == ["invalid_request"]


@pytest.mark.parametrize(
    "body",
    [b" ", b"{", b"\xff", b'{"a": 1, "a": 2}', b"[" * 100 + b"]" * 100, b'{"a": NaN}', b'"\\ud800"', b"{}{}"],
    ids=lambda body: repr(body[:12]),
)
def test_4_what_is_not_strict_json_is_a_parse_error_without_an_id(robot: NewAgent, body: bytes) -> None:
    answer = send(body, robot)
    assert (answer.status_code, code(answer), "id" in answer.json()) == (400, -32700, False)


def test_4_a_body_that_is_too_large_is_413(robot: NewAgent) -> None:
    answer = send(b'"' + b"x" * 1_000_001 + b'"', robot)
    assert (answer.status_code, code(answer)) == (413, -32600)


@pytest.mark.parametrize("params", [[], "x", 7, None, {"_meta": []}, {"_meta": None}], ids=repr)
def test_6_parameters_that_are_no_object_are_invalid_and_the_id_comes_back(robot: NewAgent, params: Any) -> None:
    answer = send({**message("ping"), "params": params, "id": "a-7"}, robot, session(robot))
    assert (answer.status_code, code(answer), answer.json()["id"]) == (400, -32602, "a-7")


@pytest.mark.parametrize("id", [0, -3, 2**53, "", "1", "ü", "x" * 1000], ids=lambda id: repr(id)[:12])
def test_6_the_answer_carries_the_very_id_of_the_request(robot: NewAgent, id: str | int) -> None:
    answer = send(message("ping", id=id), robot, session(robot))
    assert answer.json() == {"jsonrpc": "2.0", "id": id, "result": {}}


@pytest.mark.parametrize("method", ["__init__", "tools/call/x", "TOOLS/LIST", "prompts/read", "resources/get"])
def test_6_an_unknown_method_is_told_apart_by_its_code(robot: NewAgent, method: str) -> None:
    old, new = send(message(method), robot, session(robot)), modern(method, robot)
    assert [(each.status_code, code(each), each.json()["id"]) for each in (old, new)] == [
        (200, -32601, 1),
        (404, -32601, 1),
    ]


@pytest.mark.parametrize("method", ["notifications/initialized", "notifications/roots/list_changed", "notifications/x"])
def test_5_a_notification_is_accepted_without_a_word(robot: NewAgent, method: str) -> None:
    for headers, params in ((session(robot), None), ({"MCP-Protocol-Version": "2026-07-28"}, {"_meta": meta()})):
        answer = send(message(method, params, id=...), robot, headers)
        assert (answer.status_code, answer.content) == (202, b"")


def test_5_the_response_of_a_client_with_a_session_is_accepted_and_one_of_another_is_not(robot: NewAgent) -> None:
    told = {"jsonrpc": "2.0", "id": 3, "result": {}}
    assert send(told, robot, session(robot)).status_code == 202
    answer = send(told, robot, {"MCP-Protocol-Version": "2026-07-28"})
    assert (answer.status_code, code(answer)) == (400, -32600)


@pytest.mark.parametrize("accept", ["text/html", JSON, "text/event-stream", "image/*"])
def test_3_a_client_that_cannot_read_both_forms_is_told_so(robot: NewAgent, accept: str) -> None:
    answer = modern("server/discover", robot, Accept=accept)
    assert (answer.status_code, code(answer)) == (406, -32600)


@pytest.mark.parametrize("accept", ["", "*/*", BOTH, "application/*;q=0.5, text/*", "TEXT/event-stream,*/*;q=0.1"])
def test_3_a_client_that_can_read_both_forms_is_answered(robot: NewAgent, accept: str) -> None:
    assert result(modern("server/discover", robot, Accept=accept))


@pytest.mark.parametrize("kind", ["text/plain", "application/x-www-form-urlencoded", f"{JSON}; charset=utf-16"])
def test_3_a_body_of_another_type_is_415(robot: NewAgent, kind: str) -> None:
    answer = send(message("ping"), robot, content_type=kind)
    assert (answer.status_code, code(answer)) == (415, -32600)


@pytest.mark.parametrize("verb", ["PUT", "PATCH", "OPTIONS"])
def test_1_other_verbs_are_405_and_the_answer_names_those_that_are_known(robot: NewAgent, verb: str) -> None:
    answer = send(message("ping"), robot, verb=verb)
    assert (answer.status_code, code(answer)) == (405, -32600)
    assert {"GET", "POST", "DELETE"} <= set(answer["Allow"].split(", "))


def test_a_bug_of_ours_is_an_internal_error_with_the_id_of_the_request(
    robot: NewAgent, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: Any) -> Any:
        raise ZeroDivisionError("with a secret in it")

    monkeypatch.setattr("execution.protocols.mcp.views.method_of", broken)
    answer = modern("server/discover", robot)
    assert (answer.status_code, code(answer), answer.json()["id"]) == (500, -32603, 1)
    assert b"secret" not in answer.content
