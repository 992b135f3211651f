"""The OTC draft through the real door."""

from typing import Any

import orjson
import pytest
from django.test import Client

from audit.models import Event
from execution.models import Call
from execution.protocols.otc.definitions import definition
from execution.protocols.otc.version import SCHEMA
from policy.agents import NewAgent
from registry.models import Tool, ToolkitVersion
from registry.toolspec import spec_of
from tests.factories.registry import draft
from tests.protocols.specification import must_be
from tests.protocols.toolkits import Hands
from tests.protocols.wire import OTC, get, post

pytestmark = pytest.mark.django_db

Toolkits = dict[str, ToolkitVersion]


def call(client: Client, agent: NewAgent, tool: str, arguments: Any, **more: Any) -> Any:
    return post(client, OTC, {"$schema": SCHEMA, "request": {"tool_id": tool, "inputs": arguments, **more}}, agent)


def test_r59_the_drafts_path_answers_in_a_bare_body(client: Client, robot: NewAgent, hands: Hands) -> None:
    response = call(client, robot, "Calculator.Add@1.0.0", {"a": 1, "b": 2}, call_id="mine")
    body = response.json()
    assert response.status_code == 200
    assert body.pop("duration") >= 0
    assert body == {"$schema": SCHEMA, "call_id": "mine", "success": True, "output": {"value": 3}}
    assert Call.objects.get().door == "otc"


def test_r59_an_oxp_client_that_follows_the_examples_to_this_path_is_answered_in_oxp(
    client: Client, robot: NewAgent, hands: Hands
) -> None:
    asked = {"$schema": "urn:oxp:1.0", "request": {"tool_id": "Calculator.Add@1.0.0", "input": {"a": 10, "b": 5}}}
    body = post(client, OTC, asked, robot).json()
    must_be("CallToolResult", body)
    assert body["result"]["value"] == 15
    wrong = post(client, OTC, {"$schema": "urn:oxp:1.0", "request": {"tool_id": "A.B", "bogus": 1}}, robot)
    assert wrong.status_code == 400
    must_be("ServerErrorResponse", wrong.json())


@pytest.mark.parametrize("named", [[], {}, 1, None])
def test_a_version_of_a_strange_type_is_refused_in_the_drafts_form(client: Client, robot: NewAgent, named: Any) -> None:
    response = post(client, OTC, {"$schema": named, "request": {"tool_id": "A.B"}}, robot)
    assert response.status_code == 400
    assert response.json()["success"] is False


def test_without_a_call_id_one_is_made(client: Client, robot: NewAgent, hands: Hands) -> None:
    assert call(client, robot, "Calculator.Add@1.0.0", {"a": 1, "b": 2}).json()["call_id"] == Call.objects.get().call_id


@pytest.mark.parametrize(
    ("tool", "ran"),
    [
        ("Calculator.Add", "1.1.0"),
        ("Calculator.Add@latest", "1.1.0"),
        ("Calculator.Add@1", "1.0.0"),
        ("Calculator.Add@1.0", "1.0.0"),
        ("Calculator.Add@1.1", "1.1.0"),
        ("Calculator.Add@1.1.0", "1.1.0"),
    ],
)
def test_the_drafts_versions_are_resolved(client: Client, robot: NewAgent, hands: Hands, tool: str, ran: str) -> None:
    assert call(client, robot, tool, {"a": 1, "b": 2}).json()["success"] is True
    assert hands.runs[0].tool.version == ran


def test_a_tool_that_is_not_there_is_200_without_success(client: Client, robot: NewAgent, toolkits: Toolkits) -> None:
    response = call(client, robot, "Calculator.Add@9.0.0", {"a": 1, "b": 2})
    assert response.status_code == 200
    assert response.json()["success"] is False
    assert response.json()["output"]["error"]["message"] == "Tool 'Calculator_Add' was not found"


def test_invalid_input_is_200_without_success_and_names_the_parameter(
    client: Client, robot: NewAgent, toolkits: Toolkits
) -> None:
    response = call(client, robot, "Calculator.Add@1.0.0", {"a": 1, "b": "two"})
    assert response.status_code == 200
    assert response.json()["output"]["error"]["developer_message"] == "Parameter 'b': Must be a number"


def test_a_void_tool_has_an_empty_output(client: Client, robot: NewAgent, hands: Hands) -> None:
    assert call(client, robot, "Doorbell.Ring", {"doorbell_id": "doorbell84"}).json()["output"] == {}


def test_a_tool_that_fails_says_what_to_try(client: Client, robot: NewAgent, hands: Hands) -> None:
    error = call(client, robot, "Doorbell.Ring", {"doorbell_id": "doorbell1"}).json()["output"]["error"]
    assert error["additional_prompt_content"] == "ids: doorbell42,doorbell84"
    assert error["can_retry"] is True


def test_without_a_credential_it_is_401_in_the_drafts_form(client: Client, robot: NewAgent) -> None:
    response = post(client, OTC, {"request": {"tool_id": "A.B"}})
    assert response.status_code == 401
    assert response["WWW-Authenticate"].startswith("Bearer")
    assert response.json()["output"]["error"]["code"] == "unauthenticated"


def test_a_refusal_names_the_draft_as_its_door(client: Client, robot: NewAgent) -> None:
    response = post(client, OTC, {"request": {"tool_id": 5, "call_id": "mine"}}, robot)
    assert (response.status_code, response.json()["call_id"]) == (400, "mine")
    detail = orjson.loads(Event.objects.order_by("-pk")[0].detail)
    assert detail == {"door": "otc", "code": "invalid_request"}


@pytest.mark.parametrize(
    ("path", "headers"),
    [
        ("/tools?profile=otc", {}),
        ("/tools", {"Accept_Profile": "otc"}),
        ("/tools", {"Accept_Profile": "<OTC>;q=1"}),
        ("/tools", {"Accept_Profile": "<urn:else>, <otc>"}),
    ],
)
def test_the_list_of_the_draft_is_asked_for_by_profile(
    client: Client, robot: NewAgent, path: str, headers: dict[str, str]
) -> None:
    response = get(client, path, robot, **headers)
    assert response.json()["$schema"] == SCHEMA
    assert "items" not in response.json()
    assert "Accept-Profile" in response["Vary"]


def test_definitions_follow_the_prose(client: Client, robot: NewAgent, toolkits: Toolkits) -> None:
    told = {each["id"]: each for each in get(client, "/tools?profile=otc", robot).json()["tools"]}
    assert told["Calculator.Add@1.0.0"] == {
        "id": "Calculator.Add@1.0.0",
        "name": "Add",
        "description": "Add two numbers together",
        "toolkit": {
            "name": "Calculator",
            "description": "A toolkit for performing calculations.",
            "version": "1.0.0",
        },
        "input": {
            "parameters": {
                "type": "object",
                "properties": {
                    "a": {"type": "number", "description": "The first number to add."},
                    "b": {"type": "number", "description": "The second number to add."},
                },
                "required": ["a", "b"],
                "additionalProperties": False,
            }
        },
        "output": {"available_modes": ["value", "error"], "value": {"type": "number"}},
    }
    assert told["Doorbell.Ring@0.1.0"]["output"] == {"available_modes": ["null", "error"]}
    assert told["Mail.Send@1.0.0"]["input"]["non_inferrable_parameters"] == ["is_admin"]
    assert told["Mail.Send@1.0.0"]["requirements"]["secrets"] == [{"id": "SMTP_KEY"}]
    assert told["Mail.Draft@1.0.0"]["output"] == {
        "available_modes": ["value", "null", "error"],
        "description": "The draft.",
        "value": {"type": ["string", "null"], "description": "The draft."},
    }


@pytest.mark.parametrize(
    ("stored", "told"),
    [
        (True, {"available_modes": ["value", "null", "error"], "value": {}}),
        (False, {"available_modes": ["value", "error"], "value": {"not": {}}}),
    ],
)
def test_an_output_that_was_stored_as_true_or_false_is_told_as_an_object(stored: bool, told: dict[str, Any]) -> None:
    tool = Tool.objects.get(version=draft("Old", "1.0.0"))
    tool.output_schema = stored
    assert definition(spec_of(tool))["output"] == told


def test_the_drafts_list_has_a_tag_of_its_own(client: Client, robot: NewAgent, toolkits: Toolkits) -> None:
    mine = get(client, "/tools?profile=otc", robot)["ETag"]
    assert mine != get(client, "/tools", robot)["ETag"]
    assert get(client, "/tools?profile=otc", robot, If_None_Match=mine).status_code == 304
