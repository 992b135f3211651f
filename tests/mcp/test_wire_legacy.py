"""Revisions 2025-03-26 to 2025-11-25: a handshake, then a session that only its own agent can use."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from execution.models import McpSession
from policy.agents import NewAgent
from registry.models import ToolkitVersion
from tests.mcp.wire import LEGACY, code, initialize, message, result, send, session


@pytest.mark.parametrize(
    ("wanted", "spoken"),
    [
        ("2025-11-25", "2025-11-25"),
        ("2025-06-18", "2025-06-18"),
        ("2025-03-26", "2025-03-26"),
        ("2024-11-05", "2025-11-25"),
        ("2026-07-28", "2025-11-25"),
        ("1.0", "2025-11-25"),
    ],
)
def test_20_a_handshake_agrees_on_the_version_asked_for_or_else_our_latest(
    robot: NewAgent, wanted: str, spoken: str
) -> None:
    told = result(initialize(robot, wanted))
    assert told["protocolVersion"] == spoken
    assert {"name": "placet", "title": "Placet", "version": "1.0.0"}.items() <= told["serverInfo"].items()
    assert told["capabilities"]["tools"] == {"listChanged": True}
    assert ("tasks" in told["capabilities"]) == (spoken == LEGACY)
    assert McpSession.objects.get().version == spoken


@pytest.mark.parametrize(
    "params",
    [{"protocolVersion": 7}, {"protocolVersion": None}, {"capabilities": []}, {"capabilities": "x"}],
    ids=str,
)
def test_20_a_handshake_that_is_not_one_opens_no_session(robot: NewAgent, params: dict[str, Any]) -> None:
    told = {"protocolVersion": LEGACY, "capabilities": {}, **params}
    assert code(send(message("initialize", told), robot)) == -32602
    assert not McpSession.objects.exists()


def test_20_capabilities_beyond_measure_are_not_kept(robot: NewAgent) -> None:
    assert code(initialize(robot, capabilities={"experimental": {"x": "y" * 10_000}})) == -32602
    assert not McpSession.objects.exists()


def test_21_initialized_is_accepted_and_ping_is_answered(robot: NewAgent) -> None:
    headers = session(robot)
    assert send(message("notifications/initialized", id=...), robot, headers).status_code == 202
    assert result(send(message("ping"), robot, headers)) == {}


def test_22_a_session_id_is_long_visible_ascii_and_never_the_same(robot: NewAgent) -> None:
    ids = {session(robot)["Mcp-Session-Id"] for _ in range(5)}
    assert len(ids) == 5
    assert all(len(id) >= 43 and all("!" <= letter <= "~" for letter in id) for id in ids)
    assert not McpSession.objects.filter(key__in=ids).exists()  # the row alone does not let anyone in


def test_22_a_request_without_a_session_is_400_and_one_with_an_unknown_session_404(robot: NewAgent) -> None:
    for headers, status in (({}, 400), ({"Mcp-Session-Id": "x"}, 404), ({"Mcp-Session-Id": "y" * 5000}, 404)):
        for body in (message("tools/list"), message("notifications/initialized", id=...)):
            answer = send(body, robot, headers)
            assert (answer.status_code, code(answer)) == (status, -32600)


def test_22_a_session_is_worth_nothing_to_another_agent(robot: NewAgent, stranger: NewAgent) -> None:
    headers = session(robot)
    unknown = send(message("ping"), stranger, {**headers, "Mcp-Session-Id": "x"})
    for verb in ("POST", "GET", "DELETE"):
        answer = send(message("ping"), stranger, headers, verb=verb)
        assert (answer.status_code, answer.json()["error"]) == (404, unknown.json()["error"])
    assert result(send(message("ping"), robot, headers)) == {}


def test_22_a_session_that_nobody_uses_ends(robot: NewAgent, settings: Any) -> None:
    headers = session(robot)
    long_ago = timezone.now() - timedelta(seconds=settings.PLACET_MCP_IDLE + 1)
    McpSession.objects.update(seen_at=long_ago)
    assert send(message("ping"), robot, headers).status_code == 404
    session(robot)
    assert McpSession.objects.count() == 1  # and its row goes when the next one comes


def test_22_a_session_that_is_used_stays(robot: NewAgent, settings: Any) -> None:
    headers = session(robot)
    McpSession.objects.update(seen_at=timezone.now() - timedelta(seconds=settings.PLACET_MCP_IDLE - 60))
    assert result(send(message("ping"), robot, headers)) == {}
    assert timezone.now() - McpSession.objects.get().seen_at < timedelta(seconds=60)


def test_22_an_agent_has_only_so_many_sessions_in_use(robot: NewAgent, stranger: NewAgent, settings: Any) -> None:
    """CVE-2026-59951 was a server without such a bound."""
    settings.PLACET_MAX_SESSIONS = 3
    first = [session(robot) for _ in range(3)]
    answer = initialize(robot)
    assert (answer.status_code, code(answer), answer["Retry-After"]) == (429, 42900, "60")
    assert McpSession.objects.count() == 3
    session(stranger)
    assert send(None, robot, first[0], verb="DELETE").status_code == 204
    session(robot)


def test_22_a_session_that_was_left_quietly_makes_room(robot: NewAgent, settings: Any) -> None:
    settings.PLACET_MAX_SESSIONS = 2
    left, kept = session(robot), session(robot)
    McpSession.objects.order_by("id").filter(pk=McpSession.objects.earliest("id").pk).update(
        seen_at=timezone.now() - timedelta(seconds=61)
    )
    fresh = session(robot)
    assert [send(message("ping"), robot, each).status_code for each in (left, kept, fresh)] == [404, 200, 200]


def test_23_delete_ends_a_session_once_and_for_all(robot: NewAgent) -> None:
    headers = session(robot)
    answer = send(None, robot, headers, verb="DELETE")
    assert (answer.status_code, answer.content) == (204, b"")
    for verb in ("DELETE", "POST", "GET"):
        assert send(message("ping"), robot, headers, verb=verb).status_code == 404
    assert send(None, robot, verb="DELETE").status_code == 400


@pytest.mark.parametrize("version", ["1999-01-01", "2024-11-05", "2027-01-01", "latest"])
def test_25_a_version_that_we_do_not_speak_is_400(robot: NewAgent, version: str) -> None:
    headers = {**session(robot), "MCP-Protocol-Version": version}
    for verb in ("POST", "GET", "DELETE"):
        answer = send(message("ping"), robot, headers, verb=verb)
        assert (answer.status_code, code(answer)) == (400, -32022)
        assert answer.json()["error"]["data"]["requested"] == version


def test_25_a_client_may_leave_the_version_out(robot: NewAgent) -> None:
    headers = session(robot, "2025-03-26") | {"MCP-Protocol-Version": ""}
    assert result(send(message("ping"), robot, headers)) == {}


@pytest.mark.parametrize("level", ["debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"])
def test_29_a_session_sets_the_level_of_what_it_is_told(robot: NewAgent, level: str) -> None:
    headers = session(robot)
    assert result(send(message("logging/setLevel", {"level": level}), robot, headers)) == {}
    assert McpSession.objects.get().log_level == level


@pytest.mark.parametrize("params", [{}, {"level": "loud"}, {"level": 3}, {"level": ["info"]}], ids=str)
def test_29_a_level_that_there_is_not_is_refused(robot: NewAgent, params: dict[str, Any]) -> None:
    headers = session(robot)
    assert code(send(message("logging/setLevel", params), robot, headers)) == -32602
    assert McpSession.objects.get().log_level == "info"


def test_27_giving_a_request_up_rings_for_the_very_request_of_that_session(
    robot: NewAgent, stranger: NewAgent, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Checks 19 and 27: ids are the clients' own, so 1 of one session is not 1 of another, nor is it "1"."""
    rung: list[str] = []
    monkeypatch.setattr("execution.bell.ring", lambda topic, **_: rung.append(topic))
    for agent in (robot, robot, stranger):
        headers = session(agent)
        for id in (1, "1"):
            told = message("notifications/cancelled", {"requestId": id, "reason": "enough"}, id=...)
            assert send(told, agent, headers).status_code == 202
    wrong: list[Any] = [{}, {"requestId": None}, {"requestId": {}}, {"requestId": True}]
    for nonsense in wrong:
        assert send(message("notifications/cancelled", nonsense, id=...), robot, session(robot)).status_code == 202
    assert len(rung) == len(set(rung)) == 6


@pytest.mark.parametrize("version", ["2025-06-18", "2025-03-26"])
def test_tasks_are_unknown_to_revisions_that_have_none(robot: NewAgent, version: str) -> None:
    answer = send(message("tasks/list"), robot, session(robot, version))
    assert (answer.status_code, code(answer)) == (200, -32601)
    assert "tasks" in result(send(message("tasks/list"), robot, session(robot)))


@pytest.mark.parametrize("method", ["server/discover", "subscriptions/listen", "tasks/update", "completion/complete"])
def test_methods_of_the_other_era_are_unknown(robot: NewAgent, method: str) -> None:
    assert code(send(message(method), robot, session(robot))) == -32601


def test_28_what_a_client_declared_in_its_handshake_is_kept(robot: NewAgent) -> None:
    initialize(robot, capabilities={"elicitation": {"url": {}}})
    kept = McpSession.objects.get()
    assert (kept.capabilities, kept.client, kept.agent_id) == ({"elicitation": {"url": {}}}, "wire", robot.agent.pk)


def test_a_call_of_a_session_is_a_call_like_any_other(
    robot: NewAgent, toolkits: dict[str, ToolkitVersion], hands: Any
) -> None:
    headers = session(robot)
    asked = message("tools/call", {"name": "Calculator_Add", "arguments": {"a": 2, "b": 3}})
    assert result(send(asked, robot, headers))["content"] == [{"type": "text", "text": "5"}]
    with CaptureQueriesContext(connection) as of_mcp:
        send(asked, robot, headers)
    call = {"request": {"tool_id": "Calculator.Add", "input": {"a": 2, "b": 3}}}
    send(call, robot, path="/tools/call")
    with CaptureQueriesContext(connection) as of_oxp:
        send(call, robot, path="/tools/call")
    assert len(of_mcp) <= len(of_oxp) + 1  # the session's row
