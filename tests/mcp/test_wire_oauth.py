"""A resource server of OAuth 2.1: it says where tokens come from, and takes only those that were made for it."""

from __future__ import annotations

from typing import Any

import pytest
from django.core.exceptions import ImproperlyConfigured
from django.test import Client

from config import env
from policy.agents import NewAgent
from tests.mcp.wire import code, message, modern, refusals, result, send, session
from tests.policy.tokens import signed

SETTINGS = ("PLACET_AUTHORIZATION_SERVERS", "PLACET_ORIGINS")
WHERE = "/.well-known/oauth-protected-resource"
ISSUER = "https://login.example"


@pytest.fixture
def issuer(settings: Any) -> str:
    settings.PLACET_URL = "https://placet.example"
    settings.PLACET_AUTHORIZATION_SERVERS = [ISSUER]
    return ISSUER


def token(agent: NewAgent, **claims: Any) -> str:
    return signed(agent, sub=agent.agent.name, **claims)


@pytest.mark.parametrize("path", [WHERE, f"{WHERE}/mcp"])
def test_54_everyone_can_read_where_tokens_come_from(issuer: str, path: str) -> None:
    answer = Client().get(path)
    assert answer.json() == {
        "resource": "https://placet.example/mcp",
        "resource_name": "Placet",
        "authorization_servers": [ISSUER],
        "scopes_supported": ["tools:read", "tools:call"],
        "bearer_methods_supported": ["header"],
    }
    assert answer["Content-Type"] == "application/json"
    assert Client().post(path).status_code == 405


@pytest.mark.django_db
def test_54_without_a_server_that_gives_tokens_there_is_nothing_to_read_nor_to_point_at() -> None:
    assert Client().get(WHERE).status_code == 404
    answer = modern("tools/list", None)
    assert (answer.status_code, "resource_metadata" in answer["WWW-Authenticate"]) == (401, False)


@pytest.mark.django_db
@pytest.mark.parametrize("verb", ["POST", "GET", "DELETE"])
def test_55_who_brings_no_token_is_401_and_told_where_to_get_one(issuer: str, verb: str) -> None:
    answer = send(message("tools/list"), None, verb=verb)
    assert (answer.status_code, code(answer)) == (401, 40100)
    challenge = answer["WWW-Authenticate"]
    assert challenge.startswith("Bearer ")
    assert f'resource_metadata="https://placet.example{WHERE}/mcp"' in challenge
    assert 'scope="tools:read tools:call"' in challenge
    assert "error=" not in challenge


@pytest.mark.parametrize("claims", [{"exp": 1}, {"aud": "https://other.example/mcp"}, {"sub": "nobody"}], ids=str)
def test_55_56_a_token_that_is_not_for_us_is_401(robot: NewAgent, issuer: str, claims: dict[str, Any]) -> None:
    answer = modern("tools/list", signed(robot, **({"sub": "robot"} | claims)))
    assert (answer.status_code, code(answer)) == (401, 40100)
    assert 'error="invalid_token"' in answer["WWW-Authenticate"]


@pytest.mark.django_db
@pytest.mark.parametrize("sent", ["Bearer", "Bearer  ", "bearer \t"])
def test_55_what_cannot_be_a_token_is_a_bad_request(issuer: str, sent: str) -> None:
    answer = modern("tools/list", None, Authorization=sent)
    assert (answer.status_code, code(answer)) == (400, -32600)
    assert 'error="invalid_request"' in answer["WWW-Authenticate"]


@pytest.mark.django_db
def test_55_another_way_to_prove_oneself_is_answered_with_ours(issuer: str) -> None:
    answer = modern("tools/list", None, Authorization="Basic eDp5")
    assert (answer.status_code, answer["WWW-Authenticate"].split()[0]) == (401, "Bearer")


def test_56_the_endpoint_itself_is_an_audience_and_only_of_itself(robot: NewAgent, issuer: str) -> None:
    made_out = token(robot, aud="https://placet.example/mcp")
    assert result(modern("tools/list", made_out))
    assert send(None, made_out, path="/tools", verb="GET").status_code == 401
    assert result(modern("tools/list", made_out))  # what one door knows of a token is not what another knows
    assert send(message("tools/list"), made_out, path="/rpc").status_code == 401
    for audience in ("https://placet.example/mcp/", "https://placet.example/mcp#x", "https://placet.example"):
        assert modern("tools/list", token(robot, aud=audience)).status_code == 401
    assert result(modern("tools/list", token(robot, aud="placet")))


def test_56_a_token_in_the_address_is_no_token(robot: NewAgent) -> None:
    for name in ("access_token", "token", "key"):
        answer = send(message("tools/list"), None, path=f"/mcp?{name}={robot.key}")
        assert answer.status_code == 401


def test_56_a_session_does_not_stand_for_a_token(robot: NewAgent) -> None:
    assert send(message("ping"), None, session(robot)).status_code == 401


@pytest.mark.parametrize(
    ("scope", "may_read", "may_call"),
    [
        ("tools:read", True, False),
        ("tools:call", True, True),
        ("openid tools:read tools:call", True, True),
        ("openid profile", False, False),
        ("", False, False),
        ("tools:reader xtools:call", False, False),
    ],
)
def test_55_57_a_token_is_good_for_its_scopes_and_what_they_imply(
    robot: NewAgent, toolkits: Any, hands: Any, issuer: str, scope: str, may_read: bool, may_call: bool
) -> None:
    limited = token(robot, scope=scope)
    asked = {"name": "Calculator_Add", "arguments": {"a": 2, "b": 3}}
    for answer, may in ((modern("tools/list", limited), may_read), (modern("tools/call", limited, asked), may_call)):
        if may:
            assert result(answer)
            continue
        assert (answer.status_code, code(answer), answer.json()["id"]) == (403, 40300, 1)
        challenge = answer["WWW-Authenticate"]
        assert 'error="insufficient_scope"' in challenge
        assert 'scope="tools:read tools:call"' in challenge
        assert "resource_metadata=" in challenge
    assert len(hands.runs) == int(may_call)
    assert refusals() == ["insufficient_scope"] * (2 - may_read - may_call)
    assert result(modern("server/discover", limited))


def test_57_a_limited_token_is_limited_at_every_door(robot: NewAgent, toolkits: Any, hands: Any) -> None:
    limited = token(robot, scope="tools:read")
    call = {"request": {"tool_id": "Calculator.Add", "input": {"a": 2, "b": 3}}}
    assert send(call, limited, path="/tools/call").status_code == 403
    rpc = send(message("tools/call", {"name": "Calculator_Add"}), limited, path="/rpc")
    assert (rpc.status_code, code(rpc)) == (403, -32600)
    assert send({"tool_id": "Calculator.Add", "input": {}}, limited, path="/api/calls/").status_code == 403
    assert send(None, limited, path="/tools", verb="GET").status_code == 200
    assert send(None, limited, {"Accept": ""}, path="/api/calls/", verb="GET").status_code == 200
    assert send(None, token(robot, scope="x"), {"Accept": ""}, path="/api/calls/", verb="GET").status_code == 403
    assert hands.runs == []


@pytest.mark.parametrize("scope", [[], ["tools:call"], 7, None, {}], ids=repr)
def test_57_a_scope_that_is_no_text_makes_the_token_invalid(robot: NewAgent, scope: Any) -> None:
    assert modern("tools/list", token(robot, scope=scope)).status_code == 401


def test_57_a_key_is_limited_by_nothing_but_permissions_and_rules(robot: NewAgent) -> None:
    assert result(modern("tools/list", robot))
    assert result(modern("tools/list", token(robot)))


def test_without_a_credential_the_anonymous_agent_acts_in_both_eras(robot: NewAgent, settings: Any) -> None:
    settings.PLACET_ANONYMOUS_AGENT = "robot"
    assert result(modern("tools/list", None))
    assert result(send(message("ping"), None, session(None))) == {}
    assert modern("tools/list", "plc_bad_key").status_code == 401


@pytest.mark.parametrize("name", SETTINGS)
@pytest.mark.parametrize(
    "value", ["login.example", "ftp://x", "https://", "https://x?y", "https://x#y", "https://[", 'https://x"']
)
def test_54_an_address_that_is_none_is_found_at_start_by_name(
    name: str, value: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(name, f"https://good.example, {value}")
    with pytest.raises(ImproperlyConfigured, match=name):
        env.addresses(name, is_origin=name == "PLACET_ORIGINS")


def test_54_who_gives_tokens_is_reached_under_tls_unless_on_this_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOME", "http://login.example")
    with pytest.raises(ImproperlyConfigured):
        env.addresses("SOME")
    monkeypatch.setenv("SOME", "http://localhost:9000/realm, https://login.example")
    assert env.addresses("SOME") == ["http://localhost:9000/realm", "https://login.example"]
