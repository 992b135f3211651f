"""Tokens of an authorization server open every door that a key opens, for as long and as far as they say."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import pytest
import time_machine

from audit.models import Event
from policy import agents
from policy.agents import NewAgent
from policy.authentication import NotAuthenticated, authenticate, still_holds
from policy.models import Agent
from tests.mcp.wire import modern, send
from tests.policy.issuer import (
    BOTH,
    EC,
    HEADER,
    ISSUER,
    RSA,
    PrivateKey,
    issued,
    jwk,
    key_set,
    rsa_key,
    said,
    signed_text,
    statuses,
)
from tests.policy.tokens import bearer, signed

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("issuer_keys")]


@BOTH
def test_a_token_of_the_issuer_calls_tools_at_every_door(
    robot: NewAgent,
    hands: Any,
    key: PrivateKey,
    kid: str,
) -> None:
    token = issued(key, kid)
    assert statuses(token) == (200, 200)
    assert len(hands.runs) == 2
    assert send(None, token, {"Accept": ""}, path="/api/calls/", verb="GET").status_code == 200
    told = [json.loads(event.detail) for event in Event.objects.filter(event="call.received")]
    assert {each["credential"] for each in told} == {f"jwt:{ISSUER}"}
    kept = str(list(Event.objects.values()))
    assert token.rpartition(".")[2] not in kept


def test_a_key_and_a_token_of_the_agents_own_stay_good(robot: NewAgent, hands: Any) -> None:
    assert statuses(robot.key) == (200, 200)
    assert statuses(signed(robot, sub="robot")) == (200, 200)


def test_without_a_key_set_no_token_of_an_issuer_is_good(
    robot: NewAgent,
    settings: Any,
) -> None:
    settings.PLACET_JWKS = ""
    assert statuses(issued(RSA, "r1")) == (401, 401)


@pytest.mark.parametrize(
    "change",
    [
        {"exp": -1},
        {"exp": ...},
        {"exp": None},
        {"exp": True},
        {"exp": "3600"},
        {"exp": 25 * 3600},
        {"exp": 10**15},
        {"nbf": 120},
        {"nbf": "now"},
        {"nbf": None},
        {"nbf": True},
        {"iat": 120},
        {"iat": []},
        {"iss": ...},
        {"iss": None},
        {"iss": "https://evil.example"},
        {"iss": f"{ISSUER}/"},
        {"iss": [ISSUER]},
        {"aud": ...},
        {"aud": None},
        {"aud": ""},
        {"aud": []},
        {"aud": "other"},
        {"aud": ["other", {}]},
        {"aud": {"placet": 1}},
        {"aud": "https://placet.example"},
        {"sub": ...},
        {"sub": None},
        {"sub": 7},
        {"sub": ["robot"]},
        {"sub": "nobody"},
        {"sub": "Robot"},
        {"sub": "robot\n"},
        {"sub": "\ud800"},
        {"sub": "x" * 500},
        {"sub": "' OR 1=1 --"},
        {"scope": ["tools:call"]},
        {"scp": {}},
        {"scp": [1]},
        {"cnf": {"jkt": "x"}},
    ],
    ids=str,
)
def test_a_signed_token_with_wrong_claims_is_401_with_the_challenge(
    robot: NewAgent,
    hands: Any,
    change: dict[str, Any],
) -> None:
    now = {
        name: int(time.time()) + value if name in ("exp", "nbf", "iat") and type(value) is int else value
        for name, value in change.items()
    }
    token = signed_text(RSA, HEADER, json.dumps(said(**now)))
    assert statuses(token) == (401, 401)
    assert hands.runs == []
    answer = modern("tools/list", token)
    assert 'error="invalid_token"' in answer["WWW-Authenticate"]
    assert "resource_metadata=" in answer["WWW-Authenticate"]
    assert "robot" not in answer.content.decode()


@pytest.mark.parametrize(
    "change",
    [
        {"exp": 23 * 3600},
        {"nbf": 30},
        {"iat": 30},
        {"iat": ...},
        {"aud": ["other", "placet"]},
        {"sub": "robot", "azp": "other"},
    ],
    ids=str,
)
def test_clocks_may_differ_a_little_and_tokens_may_live_for_a_day(
    robot: NewAgent,
    change: dict[str, Any],
) -> None:
    now = {name: int(time.time()) + value if type(value) is int else value for name, value in change.items()}
    assert authenticate(bearer(signed_text(RSA, HEADER, json.dumps(said(**now))))).name == "robot"


def test_a_token_for_the_address_of_the_endpoint_is_good_there_alone(robot: NewAgent, hands: Any) -> None:
    assert statuses(issued(RSA, "r1", aud="https://placet.example/mcp")) == (401, 200)


@pytest.mark.parametrize(
    ("limit", "expected"),
    [
        ({"scope": "tools:read"}, (403, 403)),
        ({"scope": "openid"}, (403, 403)),
        ({"scope": "openid tools:call"}, (200, 200)),
        ({"scp": ["tools:read"]}, (403, 403)),
        ({"scp": "tools:call"}, (200, 200)),
        ({"scp": ["tools:call"], "scope": "tools:read"}, (403, 403)),
        ({}, (200, 200)),
    ],
    ids=str,
)
def test_a_token_is_good_for_its_scopes(
    robot: NewAgent,
    hands: Any,
    limit: dict[str, Any],
    expected: tuple[int, int],
) -> None:
    assert statuses(issued(RSA, "r1", **limit)) == expected


def test_the_agent_is_who_the_configured_claim_names(robot: NewAgent, settings: Any) -> None:
    settings.PLACET_JWT_AGENT_CLAIM = "azp"
    assert authenticate(bearer(issued(RSA, "r1", sub="a person", azp="robot"))).name == "robot"
    with pytest.raises(NotAuthenticated):
        authenticate(bearer(issued(RSA, "r1", sub="robot")))


def test_an_agent_that_was_switched_off_has_no_good_token(robot: NewAgent, hands: Any) -> None:
    token = issued(RSA, "r1")
    assert statuses(token) == (200, 200)
    caller = authenticate(bearer(token))
    assert still_holds(caller)
    agents.set_active(Agent.objects.get(name="robot"), False, actor="shell")
    assert statuses(token) == (401, 401)
    assert not still_holds(caller)


def test_a_token_that_was_remembered_ends_when_it_says(robot: NewAgent) -> None:
    token = issued(RSA, "r1")
    assert authenticate(bearer(token)).name == "robot"
    with time_machine.travel(time.time() + 3601), pytest.raises(NotAuthenticated):
        authenticate(bearer(token))


def test_a_key_that_left_the_set_takes_its_tokens_with_it(
    robot: NewAgent,
    hands: Any,
    issuer_keys: Path,
) -> None:
    old, new = issued(RSA, "r1"), issued(rsa_key("second"), "r2")
    assert (statuses(old), statuses(new)) == ((200, 200), (401, 401))
    issuer_keys.write_bytes(key_set(jwk(RSA, kid="r1"), jwk(rsa_key("second"), kid="r2")))
    assert (statuses(old), statuses(new)) == ((200, 200), (200, 200))
    issuer_keys.write_bytes(key_set(jwk(rsa_key("second"), kid="r2")))
    assert (statuses(old), statuses(new)) == ((401, 401), (200, 200))


def test_a_token_without_kid_means_the_only_key_of_its_kind(robot: NewAgent, issuer_keys: Path) -> None:
    for key in (RSA, EC):
        assert authenticate(bearer(issued(key))).name == "robot"
    issuer_keys.write_bytes(key_set(jwk(RSA, kid="r1"), jwk(rsa_key("second"), kid="r2")))
    with pytest.raises(NotAuthenticated):
        authenticate(bearer(issued(RSA)))
