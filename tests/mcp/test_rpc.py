"""POST /rpc: the tools reference of document 003 as it is written: two methods, five codes, no handshake."""

from __future__ import annotations

from typing import Any

import pytest

from execution.models import Call, McpSession
from policy.agents import NewAgent
from tests.mcp.wire import message, refusals, send

ADD = {"name": "Calculator_Add", "arguments": {"a": 5, "b": 3}}


def rpc(body: Any, agent: NewAgent | None, **headers: str) -> Any:
    return send(body, agent, {"Accept": "", **headers}, path="/rpc")


def error(response: Any) -> tuple[int, str, str]:
    told = response.json()
    assert told.keys() == {"jsonrpc", "error", "id"}
    return told["error"]["code"], told["error"]["message"], told["error"]["data"]["detail"]


def test_tools_are_listed_without_a_handshake(robot: NewAgent, toolkits: Any) -> None:
    answer = rpc(message("tools/list", {}), robot)
    assert (answer.status_code, answer["Content-Type"]) == (200, "application/json")
    told = answer.json()
    assert (told["jsonrpc"], told["id"]) == ("2.0", 1)
    add = next(tool for tool in told["result"]["tools"] if tool["name"] == "Calculator_Add")
    assert add["description"] == "Add two numbers together"
    assert add["inputSchema"]["type"] == "object"
    assert add["inputSchema"]["required"] == ["a", "b"]
    assert not {"resultType", "ttlMs", "cacheScope", "_meta"} & told["result"].keys()
    assert not McpSession.objects.exists()


def test_a_long_list_comes_in_pages_that_a_cursor_joins(
    robot: NewAgent, toolkits: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("execution.protocols.mcp.listing.PAGE", 2)
    names: list[str] = []
    params: dict[str, Any] = {}
    for _ in range(10):
        page = rpc(message("tools/list", params), robot).json()["result"]
        names += [tool["name"] for tool in page["tools"]]
        if "nextCursor" not in page:
            break
        params = {"cursor": page["nextCursor"]}
    assert names == ["Calculator_Add", "Doorbell_Ring", "Mail_Draft", "Mail_Send"]


def test_a_cursor_of_nobody_is_invalid(robot: NewAgent) -> None:
    number, name, detail = error(rpc(message("tools/list", {"cursor": "optional-pagination-cursor"}), robot))
    assert (number, name) == (-32602, "Invalid params")
    assert "cursor" in detail


def test_a_call_answers_with_content(robot: NewAgent, toolkits: Any, hands: Any) -> None:
    answer = rpc(message("tools/call", ADD, id=2), robot)
    told = answer.json()
    assert (answer.status_code, told["id"]) == (200, 2)
    assert told["result"]["content"] == [{"type": "text", "text": '{"result":8}'}]
    assert Call.objects.get().door == "rpc"


@pytest.mark.parametrize("arguments", [{"b": 3}, {"a": 5}], ids=str)
def test_a_missing_parameter_is_named(robot: NewAgent, toolkits: Any, hands: Any, arguments: dict[str, Any]) -> None:
    answer = rpc(message("tools/call", {"name": "Calculator_Add", "arguments": arguments}, id=2), robot)
    missing = "a" if "b" in arguments else "b"
    assert error(answer) == (-32602, "Invalid params", f"Parameter '{missing}' is required")
    assert (answer.status_code, answer.json()["id"]) == (200, 2)
    assert hands.runs == []


def test_a_wrong_parameter_is_named_too(robot: NewAgent, toolkits: Any, hands: Any) -> None:
    asked = {"name": "Calculator_Add", "arguments": {"a": "five", "b": 3}}
    number, name, detail = error(rpc(message("tools/call", asked), robot))
    assert (number, name) == (-32602, "Invalid params")
    assert "'a'" in detail


WRONG_ARGUMENTS = [{**ADD, "arguments": []}, {**ADD, "arguments": None}, {**ADD, "_meta": []}]


@pytest.mark.parametrize("params", [None, [], "x", {}, {"name": 7}, {"name": ""}, *WRONG_ARGUMENTS], ids=str)
def test_parameters_of_another_shape_are_invalid(robot: NewAgent, params: Any) -> None:
    answer = rpc({**message("tools/call"), "params": params}, robot)
    number, name, _ = error(answer)
    assert (answer.status_code, number, name) == (200, -32602, "Invalid params")


def test_an_unknown_tool_is_a_method_that_was_not_found(robot: NewAgent, stranger: NewAgent, toolkits: Any) -> None:
    """A tool that the caller may not see is as unknown as one that there is not."""
    nowhere = error(rpc(message("tools/call", {"name": "Calculator_Sub"}), stranger))
    hidden = error(rpc(message("tools/call", ADD), stranger))
    assert nowhere[:2] == hidden[:2] == (-32601, "Method not found")
    assert nowhere[2].replace("Sub", "Add") == hidden[2]


@pytest.mark.parametrize("method", ["initialize", "ping", "server/discover", "tasks/get", "prompts/list", "Mail_Draft"])
def test_no_other_method_is_known(robot: NewAgent, toolkits: Any, method: str) -> None:
    answer = rpc(message(method, id="x"), robot)
    assert error(answer)[:2] == (-32601, "Method not found")
    assert (answer.status_code, answer.json()["id"]) == (200, "x")
    assert refusals() == ["unknown_method"]


@pytest.mark.parametrize("body", [b" ", b"{", b'{"id": 1, "id": 2}', b"\xff", b"[" * 99 + b"]" * 99], ids=repr)
def test_what_is_not_json_is_a_parse_error_with_a_null_id(robot: NewAgent, body: bytes) -> None:
    answer = rpc(body, robot)
    assert error(answer)[:2] == (-32700, "Parse error")
    assert (answer.status_code, answer.json()["id"]) == (400, None)


@pytest.mark.parametrize(
    "body",
    [
        [],
        [message("tools/list")],
        7,
        {"jsonrpc": "2.0", "id": 1},
        {"jsonrpc": "2.0", "id": 1, "result": {}},
        {"method": "tools/list", "id": 1},
        message("tools/list", id=None),
        message("tools/list", id=[]),
        message("tools/call", ADD, id=...),
    ],
    ids=str,
)
def test_what_is_not_one_request_is_invalid(robot: NewAgent, toolkits: Any, hands: Any, body: Any) -> None:
    answer = rpc(body, robot)
    assert error(answer)[:2] == (-32600, "Invalid request")
    assert answer.status_code == 400
    assert hands.runs == []


def test_a_notification_is_taken_without_a_word(robot: NewAgent) -> None:
    answer = rpc(message("notifications/initialized", id=...), robot)
    assert (answer.status_code, answer.content) == (202, b"")


def test_a_bug_of_ours_is_an_internal_error(robot: NewAgent, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: Any) -> Any:
        raise ZeroDivisionError("with a secret in it")

    monkeypatch.setattr("execution.protocols.rpc.views.method_of", broken)
    answer = rpc(message("tools/list", id=9), robot)
    assert error(answer)[:2] == (-32603, "Internal error")
    assert (answer.status_code, answer.json()["id"], b"secret" in answer.content) == (500, 9, False)


@pytest.mark.django_db
def test_who_brings_no_key_is_refused_within_the_five_codes() -> None:
    answer = rpc(message("tools/list"), None)
    assert error(answer)[:2] == (-32600, "Invalid request")
    assert (answer.status_code, answer["WWW-Authenticate"]) == (401, 'Bearer realm="placet"')


@pytest.mark.parametrize("verb", ["GET", "DELETE", "PUT"])
def test_there_is_only_post(robot: NewAgent, verb: str) -> None:
    answer = send(message("tools/list"), robot, path="/rpc", verb=verb)
    assert (answer.status_code, answer["Allow"]) == (405, "POST")
