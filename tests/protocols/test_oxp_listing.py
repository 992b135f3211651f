"""GET /tools: what is told of the tools, and to whom."""

from typing import Any

import orjson
import pytest
from django.contrib.auth import get_user_model
from django.test import Client
from guardian.shortcuts import assign_perm

from execution.protocols.oxp import definitions
from execution.protocols.oxp.definitions import definition
from policy import agents
from policy.agents import NewAgent
from registry import publishing
from registry.models import Toolkit, ToolkitVersion
from tests.protocols.specification import must_be
from tests.protocols.toolkits import Publish, calculator
from tests.protocols.wire import bearer, get

pytestmark = pytest.mark.django_db

Toolkits = dict[str, ToolkitVersion]


def tools_of(client: Client, agent: NewAgent) -> list[dict[str, Any]]:
    body = get(client, "/tools", agent).json()
    must_be("ListToolsResponse", body)
    listed: list[dict[str, Any]] = body["items"]
    return listed


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
