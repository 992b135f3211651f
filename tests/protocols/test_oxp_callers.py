"""Who is asking, and what it brings for the tool."""

import time
from typing import Any

import jwt
import pytest
from django.test import Client

from audit.models import Event
from execution.models import Call
from policy import agents
from policy.agents import NewAgent
from registry.models import ToolkitVersion
from tests.protocols.specification import must_be
from tests.protocols.toolkits import Hands
from tests.protocols.wire import OXP, call, get, post

pytestmark = pytest.mark.django_db

Toolkits = dict[str, ToolkitVersion]


def token(agent: NewAgent, secret: str | None = None, algorithm: str = "HS256", **claims: Any) -> str:
    said = {"sub": agent.agent.name, "exp": int(time.time()) + 300, **claims}
    return jwt.encode({k: v for k, v in said.items() if v is not None}, secret or agent.jwt_secret, algorithm=algorithm)


def test_r39_r47_without_a_credential_it_is_401_with_a_server_error(client: Client, toolkits: Toolkits) -> None:
    for response in (
        get(client, "/tools"),
        post(client, OXP, {"request": {"tool_id": "Calculator.Add"}}),
        post(client, OXP, {}, OXP_API_Key="wrong"),
        post(client, OXP, {}, Authorization="Basic dXNlcjpwYXNz"),
        post(client, f"{OXP}?token=x&api_key=y", {}),
    ):
        must_be("ServerErrorResponse", response.json())
        assert response.status_code == 401
        assert response["WWW-Authenticate"].startswith("Bearer")


def test_a40_a_key_in_the_query_is_not_taken(client: Client, robot: NewAgent) -> None:
    assert get(client, f"/tools?access_token={robot.key}&OXP-API-Key={robot.key}").status_code == 401


def test_r46_the_key_may_come_in_its_own_header_or_as_bearer(client: Client, robot: NewAgent) -> None:
    assert get(client, "/tools", OXP_API_Key=robot.key).status_code == 200
    assert get(client, "/tools", Authorization=f"Bearer {robot.key}").status_code == 200
    assert len(robot.key) >= 43


def test_r48_a_token_signed_with_the_agents_secret_is_good(client: Client, robot: NewAgent) -> None:
    assert get(client, "/tools", Authorization=f"Bearer {token(robot)}").status_code == 200


@pytest.mark.filterwarnings("ignore::jwt.warnings.InsecureKeyLengthWarning")
@pytest.mark.parametrize(
    "claims",
    [
        {"exp": 1},
        {"exp": None},
        {"exp": int(time.time()) + 86_400},
        {"secret": "x" * 43},
        {"sub": "nobody"},
        {"nbf": int(time.time()) + 3600},
        {"algorithm": "HS512"},
        {"aud": "another.example"},
    ],
    ids=["expired", "no exp", "long-lived", "foreign secret", "unknown agent", "not yet", "other alg", "other aud"],
)
def test_r48_r49_r50_a_token_that_does_not_hold_is_401(client: Client, robot: NewAgent, claims: dict[str, Any]) -> None:
    response = get(client, "/tools", Authorization=f"Bearer {token(robot, **claims)}")
    must_be("ServerErrorResponse", response.json())
    assert response.status_code == 401


@pytest.mark.parametrize("aud", ["placet", ["placet", "another.example"]])
def test_r50_an_audience_that_is_ours_is_good(client: Client, robot: NewAgent, aud: Any) -> None:
    assert get(client, "/tools", Authorization=f"Bearer {token(robot, aud=aud)}").status_code == 200


@pytest.mark.parametrize("text", ["a.b.c", "..", "eyJhbGciOiJub25lIn0.e30.", "x" * 100_000, "' OR 1=1 --", "é"])
def test_a40_a41_a44_a_malformed_token_is_401_at_once(client: Client, robot: NewAgent, text: str) -> None:
    before = time.process_time()
    assert get(client, "/tools", Authorization=f"Bearer {text}").status_code == 401
    assert time.process_time() - before < 1


def test_a46_a_revoked_key_is_401_on_the_next_request(client: Client, robot: NewAgent) -> None:
    assert get(client, "/tools", robot).status_code == 200
    agents.revoke_key(robot.agent.credentials.get(), actor="shell")
    assert get(client, "/tools", robot).status_code == 401


def test_r45_r51_an_open_server_is_one_that_was_configured_so(client: Client, robot: NewAgent, settings: Any) -> None:
    assert get(client, "/tools").status_code == 401
    settings.PLACET_ANONYMOUS_AGENT = "robot"
    assert get(client, "/tools").status_code == 200


SEND = {"to": "a@example.com"}
BROUGHT = {
    "authorization": [{"id": "google", "token": "tok-en"}],
    "secrets": [{"id": "SMTP_KEY", "value": "s3cret"}],
    "user_id": "u-1",
}


def test_r52_a_tool_without_requirements_needs_no_context(client: Client, robot: NewAgent, hands: Hands) -> None:
    assert call(client, robot, "Mail.Draft", {}).status_code == 200


def test_r53_r54_r55_what_is_required_and_brought_reaches_the_tool(
    client: Client, robot: NewAgent, hands: Hands
) -> None:
    assert call(client, robot, "Mail.Send", SEND, context=BROUGHT).status_code == 200
    (run,) = hands.runs
    assert (run.authorization, run.secrets, run.user_id) == ({"google": "tok-en"}, {"SMTP_KEY": "s3cret"}, "u-1")


@pytest.mark.parametrize(
    ("left_out", "told"), [("authorization", "authorization"), ("secrets", "secrets"), ("user_id", "user_id")]
)
def test_r53_r54_r55_what_is_required_and_missing_is_a_server_error_that_names_it(
    client: Client, robot: NewAgent, hands: Hands, left_out: str, told: str
) -> None:
    context = {name: value for name, value in BROUGHT.items() if name != left_out}
    response = call(client, robot, "Mail.Send", SEND, context=context)
    must_be("ServerErrorResponse", response.json())
    assert (response.status_code, response.json()["code"]) == (400, "missing_requirements")
    assert told in response.json()["missing_requirements"]
    assert not hands.runs


def test_r53_a_token_under_another_id_does_not_count(client: Client, robot: NewAgent, hands: Hands) -> None:
    context = {**BROUGHT, "authorization": [{"id": "github", "token": "t"}]}
    assert call(client, robot, "Mail.Send", SEND, context=context).status_code == 400


def test_what_the_caller_brings_is_nowhere_in_what_is_kept(client: Client, robot: NewAgent, hands: Hands) -> None:
    call(client, robot, "Mail.Send", SEND, context=BROUGHT)
    kept = str(list(Call.objects.values())) + str(list(Event.objects.values()))
    assert "tok-en" not in kept
    assert "s3cret" not in kept
