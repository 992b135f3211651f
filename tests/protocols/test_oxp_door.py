"""OXP 1.0 through the real door: every rule that binds a server, by its number."""

import time
from typing import Any

import jwt
import orjson
import pytest
from django.contrib.auth import get_user_model
from django.db import OperationalError
from django.test import Client
from guardian.shortcuts import assign_perm

from audit.models import Event
from execution.models import Call
from execution.protocols import base
from execution.protocols.oxp import definitions
from execution.protocols.oxp.definitions import definition
from execution.runtimes.base import RunResult
from policy import agents
from policy.agents import NewAgent
from registry import publishing
from registry.models import Toolkit, ToolkitVersion
from tests.protocols.specification import must_be
from tests.protocols.toolkits import Hands, Publish, calculator
from tests.protocols.wire import OXP, bearer, call, get, post, written

pytestmark = pytest.mark.django_db

Toolkits = dict[str, ToolkitVersion]


def tools_of(client: Client, agent: NewAgent) -> list[dict[str, Any]]:
    body = get(client, "/tools", agent).json()
    must_be("ListToolsResponse", body)
    listed: list[dict[str, Any]] = body["items"]
    return listed


def token(agent: NewAgent, secret: str | None = None, algorithm: str = "HS256", **claims: Any) -> str:
    said = {"sub": agent.agent.name, "exp": int(time.time()) + 300, **claims}
    return jwt.encode({k: v for k, v in said.items() if v is not None}, secret or agent.jwt_secret, algorithm=algorithm)


# --- listing


def test_r4_r7_r57_the_list_is_an_object_with_the_array_under_both_names(
    client: Client, robot: NewAgent, toolkits: Toolkits
) -> None:
    response = get(client, "/tools", robot)
    assert response.status_code == 200
    body = response.json()
    must_be("ListToolsResponse", body)
    assert body["$schema"] == "urn:oxp:1.0"
    assert body["items"] == body["tools"]
    assert len(body["items"]) == 5


def test_r5_r9_r10_r11_r12_every_definition_is_complete_and_its_id_unique(
    client: Client, robot: NewAgent, toolkits: Toolkits
) -> None:
    listed = tools_of(client, robot)
    ids = [each["id"] for each in listed]
    assert ids == [
        "Calculator.Add@1.0.0",
        "Calculator.Add@1.1.0",
        "Doorbell.Ring@0.1.0",
        "Mail.Draft@1.0.0",
        "Mail.Send@1.0.0",
    ]
    assert listed[0] == {
        "id": "Calculator.Add@1.0.0",
        "name": "Calculator_Add",
        "description": "Add two numbers together",
        "version": "1.0.0",
        "input_schema": {
            "type": "object",
            "properties": {
                "a": {"type": "number", "description": "The first number to add."},
                "b": {"type": "number", "description": "The second number to add."},
            },
            "required": ["a", "b"],
            "additionalProperties": False,
        },
        "output_schema": {"type": "number"},
    }
    assert all(each["description"] for each in listed)


def test_r6_a_caller_without_tools_gets_an_empty_array(client: Client, stranger: NewAgent) -> None:
    assert tools_of(client, stranger) == []


def test_r8_a_get_may_carry_a_body_that_names_the_version(client: Client, robot: NewAgent) -> None:
    def ask(body: Any) -> Any:
        return client.generic(
            "GET", "/tools", orjson.dumps(body), content_type="application/json", headers=bearer(robot.key)
        )

    assert ask({"$schema": "urn:oxp:1.0"}).status_code == 200
    assert ask({}).status_code == 200
    other = ask({"$schema": "urn:oxp:7.0"})
    assert (other.status_code, other.json()["code"]) == (400, "unsupported_version")
    assert ask([]).status_code == 400


def test_r13_r14_the_input_schema_stands_directly_and_has_no_references(
    client: Client, robot: NewAgent, toolkits: Toolkits
) -> None:
    send = next(each for each in tools_of(client, robot) if each["name"] == "Mail_Send")
    assert b"$ref" not in orjson.dumps(send)
    assert b"$defs" not in orjson.dumps(send)
    assert send["input_schema"]["properties"] == {
        "to": {"type": "string", "maxLength": 200, "description": "to"},
        "body": {"type": "string", "title": "The letter", "description": "The letter"},
        "is_admin": {"type": "boolean", "description": "is_admin"},
    }


def test_r15_a_tool_without_output_says_null_and_one_that_says_nothing_returns_anything(
    client: Client, robot: NewAgent, toolkits: Toolkits
) -> None:
    output = {each["name"]: each["output_schema"] for each in tools_of(client, robot)}
    assert output["Doorbell_Ring"] is None
    assert output["Mail_Send"] == {}


def test_r16_requirements_are_told_only_where_there_are_any(
    client: Client, robot: NewAgent, toolkits: Toolkits
) -> None:
    told = {each["name"]: each.get("requirements") for each in tools_of(client, robot)}
    assert told["Mail_Send"] == {
        "authorization": [{"id": "google", "oauth2": {"scopes": ["mail.send"]}}],
        "secrets": [{"id": "SMTP_KEY"}],
        "user_id": True,
    }
    assert told["Calculator_Add"] is None


def test_an_agent_is_listed_only_the_toolkits_it_may_call(
    client: Client, stranger: NewAgent, toolkits: Toolkits
) -> None:
    assign_perm("registry.call_toolkit", stranger.agent.user, Toolkit.objects.get(name="Doorbell"))
    assert [each["id"] for each in tools_of(client, stranger)] == ["Doorbell.Ring@0.1.0"]


def test_the_list_follows_publishing_and_withdrawal(
    client: Client, robot: NewAgent, publish: Publish, toolkits: Toolkits
) -> None:
    first = get(client, "/tools", robot)
    newer = publish(calculator("1.2.0"))
    assert "Calculator.Add@1.2.0" in [each["id"] for each in tools_of(client, robot)]
    publishing.withdraw(newer, by=get_user_model().objects.get(username="author"), reason="wrong")
    assert get(client, "/tools", robot).content == first.content


def test_a_reader_who_has_the_list_is_not_sent_it_again(
    client: Client, robot: NewAgent, publish: Publish, toolkits: Toolkits
) -> None:
    etag = get(client, "/tools", robot)["ETag"]
    for given in (etag, f"W/{etag}", f'"other", {etag}', "*"):
        again = get(client, "/tools", robot, If_None_Match=given)
        assert (again.status_code, again.content, again["ETag"]) == (304, b"", etag)
    publish(calculator("1.3.0"))
    assert get(client, "/tools", robot, If_None_Match=etag).status_code == 200


def test_the_list_of_an_unknown_profile_is_refused(client: Client, robot: NewAgent) -> None:
    assert get(client, "/tools?profile=smoke", robot).status_code == 400


# --- calling


def test_r18_r21_r22_r27_a_call_is_answered_with_an_id_of_its_own(
    client: Client, robot: NewAgent, hands: Hands
) -> None:
    response = call(client, robot, "Calculator.Add@1.0.0", {"a": 10, "b": 5})
    assert response.status_code == 200
    must_be("CallToolResult", response.json())
    result = response.json()["result"]
    assert (result["success"], result["value"]) == (True, 15)
    assert result["duration"] >= 0
    assert Call.objects.get().call_id == result["call_id"]
    assert len(hands.runs) == 1


def test_r19_the_version_of_the_protocol_may_be_left_out(client: Client, robot: NewAgent, hands: Hands) -> None:
    asked = {"request": {"tool_id": "Calculator.Add@1.0.0", "input": {"a": 1, "b": 1}}}
    body = post(client, OXP, asked, robot).json()
    assert body["$schema"] == "urn:oxp:1.0"
    assert body["result"]["value"] == 2


def test_r23_r24_a_repeated_call_id_gives_the_same_answer_and_runs_once(
    client: Client, robot: NewAgent, hands: Hands
) -> None:
    first = call(client, robot, "Calculator.Add@1.0.0", {"a": 1, "b": 2}, call_id="mine")
    again = call(client, robot, "Calculator.Add@1.0.0", {"a": 1, "b": 2}, call_id="mine")
    assert first.json()["result"]["call_id"] == "mine"
    assert again.json()["result"]["value"] == first.json()["result"]["value"] == 3
    assert len(hands.runs) == 1


def test_r24_a_call_id_of_another_request_is_refused_and_the_first_untouched(
    client: Client, robot: NewAgent, hands: Hands
) -> None:
    call(client, robot, "Calculator.Add@1.0.0", {"a": 1, "b": 2}, call_id="mine")
    other = call(client, robot, "Calculator.Add@1.0.0", {"a": 1, "b": 3}, call_id="mine")
    assert (other.status_code, other.json()["code"]) == (422, "call_id_reused")
    must_be("ValidationErrorResponse", other.json())
    assert Call.objects.get().result == "3"


def test_r25_the_trace_id_is_kept_with_the_call(client: Client, robot: NewAgent, hands: Hands) -> None:
    call(client, robot, "Calculator.Add@1.0.0", {"a": 1, "b": 2}, trace_id="trace-7")
    assert Call.objects.get().trace_id == "trace-7"


def test_r28_a_value_that_breaks_the_tools_promise_is_not_passed_on(
    client: Client, robot: NewAgent, hands: Hands
) -> None:
    hands.overrides["Calculator_Add"] = lambda invocation: RunResult(value="fifteen")
    result = call(client, robot, "Calculator.Add@1.0.0", {"a": 10, "b": 5}).json()["result"]
    assert result["success"] is False
    assert "value" not in result


def test_r30_a_void_tool_answers_without_a_value(client: Client, robot: NewAgent, hands: Hands) -> None:
    response = call(client, robot, "Doorbell.Ring@0.1.0", {"doorbell_id": "doorbell42"})
    must_be("CallToolResult", response.json())
    assert response.json()["result"].get("value") is None


# --- versions: only 1.1.0 knows c


@pytest.mark.parametrize(
    ("tool", "ran"),
    [
        ("Calculator.Add@1.0.0", "1.0.0"),
        ("Calculator.Add@1.1.0", "1.1.0"),
        ("Calculator.Add@1", "1.0.0"),
        ("Calculator.Add", "1.1.0"),
        ("calculator.add", "1.1.0"),
    ],
)
def test_r31_r32_r33_a_version_is_resolved_exactly(
    client: Client, robot: NewAgent, hands: Hands, tool: str, ran: str
) -> None:
    assert call(client, robot, tool, {"a": 1, "b": 2}).status_code == 200
    assert hands.runs[0].tool.version == ran
    with_c = call(client, robot, tool, {"a": 1, "b": 2, "c": 3})
    assert with_c.status_code == (200 if ran == "1.1.0" else 422)


def test_r34_the_latest_version_is_the_numerically_highest(
    client: Client, robot: NewAgent, hands: Hands, publish: Publish
) -> None:
    publish(calculator("1.10.0"))
    publish(calculator("1.9.0"))
    call(client, robot, "Calculator.Add", {"a": 1, "b": 2})
    assert hands.runs[0].tool.version == "1.10.0"


@pytest.mark.parametrize(
    "tool", ["Calculator.Add@1.0", "Calculator.Add@latest", "Calculator.Add@1.0.0-rc", "Calculator", "Calculator.Add@"]
)
def test_r35_r37_other_forms_are_an_invalid_tool_id(client: Client, robot: NewAgent, hands: Hands, tool: str) -> None:
    response = call(client, robot, tool, {"a": 1, "b": 2})
    must_be("ServerErrorResponse", response.json())
    assert response.status_code == 400
    assert not hands.runs


# --- the three kinds of error


@pytest.mark.parametrize(
    ("tool", "said", "to_developers"),
    [
        ("Calculator.Add@2.0.0", "Calculator_Add", "Calculator.Add version 2.0.0 is not available"),
        ("Calculator.Add@2", "Calculator_Add", "Calculator.Add version 2.0.0 is not available"),
        ("Nowhere.Nothing@1.0.0", "Nowhere_Nothing", "Nowhere.Nothing version 1.0.0 is not available"),
    ],
)
def test_r36_r37_r38_a_tool_that_is_not_there_is_a_server_error(
    client: Client, robot: NewAgent, hands: Hands, tool: str, said: str, to_developers: str
) -> None:
    response = call(client, robot, tool)
    must_be("ServerErrorResponse", response.json())
    assert response.status_code == 400
    assert response.json()["message"] == f"Tool '{said}' was not found"
    assert response.json()["developer_message"] == to_developers


def test_r37_a_tool_the_caller_may_not_know_looks_like_none(
    client: Client, stranger: NewAgent, robot: NewAgent, toolkits: Toolkits
) -> None:
    hidden = call(client, stranger, "Calculator.Add@1.0.0", {"a": 1, "b": 2}, call_id="x").json()
    absent = call(client, stranger, "Nowhere.Add@1.0.0", {"a": 1, "b": 2}, call_id="y").json()
    plain = [str(body).replace("Nowhere", "Calculator").replace("'y'", "'x'") for body in (hidden, absent)]
    assert plain[0] == plain[1]


def test_r37_a_version_that_was_withdrawn_is_not_available(client: Client, robot: NewAgent, toolkits: Toolkits) -> None:
    author = get_user_model().objects.get(username="author")
    publishing.withdraw(toolkits["Calculator@1.0.0"], by=author, reason="wrong sums")
    assert call(client, robot, "Calculator.Add@1.0.0", {"a": 1, "b": 2}).status_code == 400


def test_a_deprecated_version_still_answers_and_says_so(
    client: Client, robot: NewAgent, toolkits: Toolkits, hands: Hands
) -> None:
    publishing.deprecate(toolkits["Calculator@1.0.0"], by=get_user_model().objects.get(username="author"))
    response = call(client, robot, "Calculator.Add@1.0.0", {"a": 1, "b": 2})
    must_be("CallToolResult", response.json())
    assert response.json()["result"]["value"] == 3
    assert response["Deprecation"] == "true"
    assert "deprecated" in response.json()["warnings"][0]


def test_r37_a_database_that_is_away_is_a_server_error_that_says_when_to_return(
    client: Client, robot: NewAgent, monkeypatch: pytest.MonkeyPatch
) -> None:
    def away(request: object) -> object:
        raise OperationalError("connection refused")

    monkeypatch.setattr(base, "admit", away)
    response = call(client, robot, "Calculator.Add", {"a": 1, "b": 2})
    must_be("ServerErrorResponse", response.json())
    assert (response.status_code, response.json()["code"], response["Retry-After"]) == (400, "unavailable", "2")
    assert "connection refused" not in response.content.decode()


def test_a_bug_of_ours_is_500_in_the_doors_own_form_and_tells_nothing(
    client: Client, robot: NewAgent, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def broken(request: object) -> object:
        raise ZeroDivisionError("inner workings")

    monkeypatch.setattr(base, "admit", broken)
    response = call(client, robot, "Calculator.Add", {"a": 1, "b": 2})
    must_be("ServerErrorResponse", response.json())
    assert (response.status_code, response.json()["code"]) == (500, "internal")
    assert "inner workings" not in response.content.decode()
    assert "inner workings" in caplog.text


def test_r40_r41_r42_invalid_input_is_told_by_parameter_before_the_tool_is_called(
    client: Client, robot: NewAgent, hands: Hands
) -> None:
    response = call(client, robot, "Calculator.Add@1.0.0", {"a": 10, "b": "infinity"})
    must_be("ValidationErrorResponse", response.json())
    assert response.status_code == 422
    assert response.json()["message"] == "Some input parameters are invalid"
    assert response.json()["parameter_errors"] == {"b": "Must be a number"}
    assert not hands.runs


def test_r26_r41_input_that_was_left_out_is_an_empty_object(client: Client, robot: NewAgent, hands: Hands) -> None:
    response = call(client, robot, "Calculator.Add@1.0.0")
    assert response.status_code == 422
    assert set(response.json()["parameter_errors"]) == {"a", "b"}


def test_r29_r43_a_tool_that_fails_is_200_without_success(client: Client, robot: NewAgent, hands: Hands) -> None:
    response = call(client, robot, "Doorbell.Ring@0.1.0", {"doorbell_id": "doorbell1"})
    assert response.status_code == 200
    must_be("CallToolResult", response.json())
    assert response.json()["result"]["error"]["message"] == "Doorbell ID not found"


# --- who is asking


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
    before = time.perf_counter()
    assert get(client, "/tools", Authorization=f"Bearer {text}").status_code == 401
    assert time.perf_counter() - before < 1


def test_a46_a_revoked_key_is_401_on_the_next_request(client: Client, robot: NewAgent) -> None:
    assert get(client, "/tools", robot).status_code == 200
    agents.revoke_key(robot.agent.credentials.get(), actor="shell")
    assert get(client, "/tools", robot).status_code == 401


def test_r45_r51_an_open_server_is_one_that_was_configured_so(client: Client, robot: NewAgent, settings: Any) -> None:
    assert get(client, "/tools").status_code == 401
    settings.PLACET_ANONYMOUS_AGENT = "robot"
    assert get(client, "/tools").status_code == 200


# --- what the caller brings

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


# --- paths and methods


@pytest.mark.parametrize(
    ("method", "path", "allowed"),
    [
        ("GET", "/tools/call", "POST"),
        ("PUT", "/tools/call", "POST"),
        ("OPTIONS", "/tools/call", "POST"),
        ("TRACE", "/tools/call", "POST"),
        ("DISPATCH", "/tools/call", "POST"),
        ("POST", "/tools", "GET, HEAD"),
        ("DELETE", "/health", "GET, HEAD"),
        ("GET", "/call", "POST"),
    ],
)
def test_r18_another_method_is_405_and_says_which_are_there(
    client: Client, robot: NewAgent, method: str, path: str, allowed: str
) -> None:
    response = client.generic(method, path, headers=bearer(robot.key))
    assert (response.status_code, response["Allow"]) == (405, allowed)
    assert response["Content-Type"] == "application/json"


def test_a_refusal_of_a_known_caller_leaves_one_event(client: Client, robot: NewAgent) -> None:
    before = written()
    post(client, OXP, {"request": {"tool_id": "A.B", "bogus": 1}}, robot)
    assert written() == {**before, "events": before["events"] + 1}
    event = Event.objects.order_by("-pk")[0]
    assert (event.event, event.actor, event.outcome) == ("request.refused", "agent:robot", "refused")
    assert orjson.loads(event.detail) == {"door": "oxp", "code": "invalid_request"}


def test_a_refusal_of_a_stranger_leaves_nothing(client: Client, robot: NewAgent) -> None:
    before = written()
    post(client, OXP, b"{", OXP_API_Key="plc_unknown_key")
    assert written() == before


def test_a51_a_call_id_belongs_to_its_agent_alone(client: Client, robot: NewAgent, hands: Hands) -> None:
    other = agents.create("other", actor="shell", call_all=True)
    call(client, robot, "Calculator.Add@1.0.0", {"a": 1, "b": 2}, call_id="same")
    answer = call(client, other, "Calculator.Add@1.0.0", {"a": 5, "b": 5}, call_id="same")
    assert answer.json()["result"]["value"] == 10


def test_the_list_is_encoded_once_for_all_callers_with_the_same_toolkits(
    client: Client, robot: NewAgent, publish: Publish, monkeypatch: pytest.MonkeyPatch, toolkits: Toolkits
) -> None:
    encoded = []

    def counted(tool: Any) -> dict[str, Any]:
        encoded.append(tool.tool_id)
        return definition(tool)

    monkeypatch.setattr(definitions, "definition", counted)
    twin = agents.create("twin", actor="shell", call_all=True)
    first = get(client, "/tools", robot)
    assert len(encoded) == 5
    assert get(client, "/tools", robot).content == get(client, "/tools", twin).content == first.content
    assert len(encoded) == 5
    publish(calculator("1.2.0"))
    get(client, "/tools", robot)
    assert len(encoded) == 11
