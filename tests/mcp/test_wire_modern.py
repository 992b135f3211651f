"""Revision 2026-07-28: no handshake; each request says all there is to know, and some of it in headers too."""

from __future__ import annotations

import base64
from typing import Any

import pytest

from execution.models import McpSession
from policy.agents import NewAgent
from registry.models import ToolkitVersion
from tests.mcp.wire import LEGACY, META, MODERN, code, message, meta, modern, refusals, result, send, session

LACKING = [f"{META}protocolVersion", f"{META}clientCapabilities"]
REMOVED = ["initialize", "ping", "logging/setLevel", "resources/subscribe", "resources/unsubscribe", "tasks/list"]


def encoded(text: str) -> str:
    return f"=?base64?{base64.b64encode(text.encode()).decode()}?="


def test_31_nothing_of_a_session_is_minted_or_minded(robot: NewAgent) -> None:
    answer = modern("server/discover", robot, Mcp_Session_Id="nobody-knows-it", Last_Event_ID="7")
    assert result(answer)
    assert "Mcp-Session-Id" not in answer
    assert not McpSession.objects.exists()


@pytest.mark.parametrize("verb", ["GET", "DELETE", "HEAD"])
def test_31_there_is_only_post(robot: NewAgent, verb: str) -> None:
    answer = send(None, robot, {"MCP-Protocol-Version": MODERN}, verb=verb)
    assert (answer.status_code, answer["Allow"]) == (405, "POST")


@pytest.mark.parametrize("method", REMOVED)
def test_37_what_this_revision_removed_is_unknown_and_404(robot: NewAgent, method: str) -> None:
    answer = modern(method, robot, {"taskId": "x"} if method == "tasks/list" else {})
    assert (answer.status_code, code(answer), answer.json()["id"]) == (404, -32601, 1)
    assert refusals() == ["unknown_method"]
    assert not McpSession.objects.exists()


@pytest.mark.parametrize("lacking", LACKING)
def test_32_a_request_that_does_not_introduce_itself_is_400(robot: NewAgent, lacking: str) -> None:
    told = {name: value for name, value in meta().items() if name != lacking}
    headers = {"MCP-Protocol-Version": MODERN, "Mcp-Method": "tools/list"}
    answer = send(message("tools/list", {"_meta": told}), robot, headers)
    assert (answer.status_code, code(answer)) == (400, -32602)
    assert lacking in answer.json()["error"]["message"]


def test_32_capabilities_are_an_object_and_who_the_client_is_may_stay_unsaid(robot: NewAgent) -> None:
    headers = {"MCP-Protocol-Version": MODERN, "Mcp-Method": "tools/list"}
    wrong: list[Any] = [[], "x", None, 7]
    for capabilities in wrong:
        told = {**meta(), f"{META}clientCapabilities": capabilities}
        answer = send(message("tools/list", {"_meta": told}), robot, headers)
        assert (answer.status_code, code(answer)) == (400, -32602)
    assert result(modern("tools/list", robot))
    named = {**meta(), f"{META}clientInfo": {"name": "x", "version": "1"}}
    assert result(modern("tools/list", robot, {"_meta": named}))


@pytest.mark.parametrize("header", ["", LEGACY, "2026-07-29", "2026-07-28x", "x"])
def test_33_the_version_in_the_header_is_the_one_in_the_message(robot: NewAgent, header: str) -> None:
    answer = modern("tools/list", robot, MCP_Protocol_Version=header)
    assert (answer.status_code, code(answer)) == (400, -32020)
    assert refusals() == ["header_mismatch"]


@pytest.mark.parametrize("version", ["2027-01-01", "1999-01-01", LEGACY, "DRAFT-2026-v1"])
def test_34_a_version_that_we_do_not_speak_is_answered_with_those_we_do(robot: NewAgent, version: str) -> None:
    headers = {"MCP-Protocol-Version": version, "Mcp-Method": "tools/list"}
    answer = send(message("tools/list", {"_meta": meta(version)}), robot, headers)
    assert (answer.status_code, code(answer)) == (400, -32022)
    data = answer.json()["error"]["data"]
    assert (data["requested"], data["supported"]) == (version, [MODERN])


@pytest.mark.parametrize("header", ["", "tools/call", "TOOLS/LIST", "tools/list, tools/list"])
def test_35_the_method_in_the_header_is_the_one_in_the_message(robot: NewAgent, header: str) -> None:
    answer = modern("tools/list", robot, Mcp_Method=header)
    assert (answer.status_code, code(answer), answer.json()["id"]) == (400, -32020, 1)


@pytest.mark.parametrize(
    "header", ["", "Calculator_add", "Doorbell_Ring", encoded("x"), "=?base64?%%%?=", "=?base64?/w==?="]
)
def test_35_the_name_in_the_header_is_the_one_in_the_message(
    robot: NewAgent, toolkits: dict[str, ToolkitVersion], hands: Any, header: str
) -> None:
    asked = {"name": "Calculator_Add", "arguments": {"a": 2, "b": 3}}
    answer = modern("tools/call", robot, asked, Mcp_Name=header)
    assert (answer.status_code, code(answer)) == (400, -32020)
    assert hands.runs == []


@pytest.mark.parametrize("header", ["Calculator_Add", "  Calculator_Add\t", encoded("Calculator_Add")])
def test_35_a_name_may_be_padded_or_written_in_base64(
    robot: NewAgent, toolkits: dict[str, ToolkitVersion], hands: Any, header: str
) -> None:
    asked = {"name": "Calculator_Add", "arguments": {"a": 2, "b": 3}}
    assert result(modern("tools/call", robot, asked, Mcp_Name=header))["structuredContent"] == 5


@pytest.mark.parametrize("method", ["tasks/get", "tasks/cancel", "tasks/update"])
def test_35_a_task_is_named_in_the_header_too(robot: NewAgent, method: str) -> None:
    answer = modern(method, robot, {"taskId": "one"}, Mcp_Name="other")
    assert (answer.status_code, code(answer)) == (400, -32020)


def test_35_header_names_are_read_without_case(robot: NewAgent) -> None:
    headers = {"mcp-protocol-version": MODERN, "MCP-METHOD": "tools/list"}
    assert result(send(message("tools/list", {"_meta": meta()}), robot, headers))


def test_38_discover_says_who_we_are_and_what_we_can_do(robot: NewAgent) -> None:
    """Checks 7, 38 and 40: the tools capability is declared, and the answer is the caller's own."""
    told = result(modern("server/discover", robot))
    assert told["supportedVersions"] == [MODERN]
    assert told["capabilities"]["tools"] == {"listChanged": True}
    assert f"{META}tasks" in told["capabilities"]["extensions"]
    assert (type(told["ttlMs"]), told["ttlMs"] >= 0, told["cacheScope"]) == (int, True, "private")
    assert told["instructions"]


@pytest.mark.parametrize("method", ["server/discover", "tools/list"])
def test_39_every_result_says_its_type_and_who_gave_it(robot: NewAgent, method: str) -> None:
    told = result(modern(method, robot))
    assert told["resultType"] == "complete"
    assert told["_meta"][f"{META}serverInfo"]["name"] == "placet"
    assert {"ttlMs", "cacheScope"} <= told.keys()


def test_41_the_list_depends_on_who_asks_and_on_nothing_that_came_before(
    robot: NewAgent, stranger: NewAgent, toolkits: dict[str, ToolkitVersion], hands: Any
) -> None:
    before = result(modern("tools/list", robot))
    modern("tools/call", robot, {"name": "Calculator_Add", "arguments": {"a": 2, "b": 3}})
    assert result(modern("tools/list", robot)) == before
    assert [tool["name"] for tool in before["tools"]] == sorted(tool["name"] for tool in before["tools"])
    assert result(modern("tools/list", stranger))["tools"] == []


@pytest.mark.parametrize("cursor", ["x", 7, None, [], "bm9uc2Vuc2U", "a" * 5000], ids=lambda cursor: repr(cursor)[:12])
def test_8_a_cursor_that_is_not_ours_is_invalid(robot: NewAgent, cursor: Any) -> None:
    answer = modern("tools/list", robot, {"cursor": cursor})
    assert code(answer) == -32602


def test_49_our_own_codes_lie_outside_of_what_is_reserved() -> None:
    from execution.protocols.mcp import rpcerrors

    standard = {-32700, -32600, -32601, -32602, -32603, -32020, -32021, -32022, -32042}
    codes = {value for name, value in vars(rpcerrors).items() if name.isupper() and isinstance(value, int)}
    assert standard <= codes
    assert all(not -32768 <= each <= -32000 for each in codes - standard)


def test_a_modern_request_costs_no_query_more_than_a_door_without_sessions(
    robot: NewAgent, toolkits: dict[str, ToolkitVersion], hands: Any
) -> None:
    from django.db import connection
    from django.test.utils import CaptureQueriesContext

    asked = {"name": "Calculator_Add", "arguments": {"a": 2, "b": 3}}
    call = {"request": {"tool_id": "Calculator.Add", "input": {"a": 2, "b": 3}}}
    modern("tools/call", robot, asked)
    send(call, robot, path="/tools/call")
    with CaptureQueriesContext(connection) as of_mcp:
        modern("tools/call", robot, asked)
    with CaptureQueriesContext(connection) as of_oxp:
        send(call, robot, path="/tools/call")
    assert len(of_mcp) <= len(of_oxp)


@pytest.mark.parametrize(
    ("method", "name"),
    [
        ("prompts/list", "prompts"),
        ("resources/list", "resources"),
        ("resources/templates/list", "resourceTemplates"),
    ],
)
def test_40_who_looks_for_what_placet_has_none_of_finds_an_empty_list_with_hints(
    robot: NewAgent, method: str, name: str
) -> None:
    told = modern(method, robot).json()["result"]
    assert (told[name], told["ttlMs"], told["cacheScope"]) == ([], 60_000, "private")
    assert set(send(message(method), robot, session(robot)).json()["result"]) == {name}
    assert code(modern(method, robot, {"cursor": "x"})) == -32602


@pytest.mark.parametrize(("method", "param"), [("prompts/get", "name"), ("resources/read", "uri")])
def test_37_what_is_on_no_list_cannot_be_got_and_is_named(robot: NewAgent, method: str, param: str) -> None:
    asked = {param: "test://nothing"}
    for answer in (
        modern(method, robot, asked, Mcp_Name=asked[param]),
        send(message(method, asked), robot, session(robot)),
    ):
        assert code(answer) == -32602
        assert answer.json()["error"]["data"] == asked
    assert code(send(message(method, {param: 7}), robot, session(robot))) == -32602
