"""What is wrong deep inside a parameter is told with its place in it, at every door; so is what is wrong with all."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from django.test import Client

from audit.models import Event
from execution.models import Call
from tests.protocols.toolkits import Hands, Publish, manifest
from tests.protocols.wire import OTC, OXP, post

if TYPE_CHECKING:
    from policy.agents import NewAgent

pytestmark = pytest.mark.django_db

ADDRESS = {
    "type": "object",
    "properties": {"zip": {"type": "string"}, "n": {"type": "integer"}},
    "required": ["zip"],
}
INPUT = {
    "type": "object",
    "properties": {"address": ADDRESS, "items": {"type": "array", "minItems": 3, "items": ADDRESS}},
    "anyOf": [{"required": ["address"]}, {"required": ["items"]}],
}
RUNTIME = {"type": "http", "endpoint": "https://tools.example/"}
WHOLE = "Must match one of the allowed forms"


@pytest.fixture(autouse=True)
def _(publish: Publish, hands: Hands) -> None:
    publish(manifest("Post", "1.0.0", {"name": "Send", "description": "Sends", "input": INPUT, "runtime": RUNTIME}))


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (
            {"address": {"zip": 5, "n": "x"}},
            {"address": "At 'n': must be an integer; at 'zip': must be a string"},
        ),
        ({"address": {}}, {"address": "At 'zip': is required"}),
        ({"address": 5}, {"address": "Must be an object"}),
        (
            {"items": [{"zip": "a"}, {"zip": 1}]},
            {"items": "At '1.zip': must be a string; must have at least 3 items"},
        ),
        ({}, {"input": WHOLE}),
    ],
)
def test_a_fault_is_told_where_it_is(client: Client, robot: NewAgent, arguments: Any, told: dict[str, str]) -> None:
    response = post(client, OXP, {"request": {"tool_id": "Post.Send", "input": arguments}}, robot)

    assert (response.status_code, response.json()["parameter_errors"]) == (422, told)


def test_a_fault_of_the_whole_and_one_of_a_parameter_of_that_name_are_both_told(
    client: Client, robot: NewAgent, publish: Publish
) -> None:
    odd = {
        "type": "object",
        "properties": {"input": {"type": "integer"}},
        "anyOf": [{"required": ["a"]}, {"required": ["b"]}],
    }
    publish(manifest("Odd", "1.0.0", {"name": "Do", "description": "Does", "input": odd, "runtime": RUNTIME}))
    response = post(client, OXP, {"request": {"tool_id": "Odd.Do", "input": {"input": "x"}}}, robot)

    assert response.json()["parameter_errors"] == {"input": f"{WHOLE}; Must be an integer"}


def test_a_fault_of_the_whole_has_a_name_at_other_doors_too(client: Client, robot: NewAgent) -> None:
    from execution.protocols.otc.version import SCHEMA

    native = post(client, "/api/calls/", {"tool_id": "Post.Send", "input": {}}, robot).json()
    otc = post(client, OTC, {"$schema": SCHEMA, "request": {"tool_id": "Post.Send", "inputs": {}}}, robot).json()
    envelope = {
        "tool_contract_version": "v1",
        "request_id": "r1",
        "tool": {"name": "Post.Send", "operation": "invoke"},
        "input": {},
    }
    contract = post(client, "/contract/v1/execute", envelope, robot).json()

    assert native["errors"] == [{"path": "input", "reason": WHOLE}]
    assert otc["output"]["error"]["developer_message"] == f"Parameter 'input': {WHOLE}"
    assert contract["error"]["details"]["parameters"] == {"input": WHOLE}


SECRETIVE = {
    "type": "object",
    "properties": {
        "logins": {"type": "object", "x-secret": True, "additionalProperties": {"type": "string", "minLength": 3}},
        "vault": {
            "type": "object",
            "properties": {"doors": {"type": "array", "items": {"writeOnly": True, "type": "object"}}},
            "additionalProperties": {"type": "string"},
        },
        "named": {"type": "object", "additionalProperties": {"type": "string"}},
    },
    "additionalProperties": False,
}
TOKEN = "ghp_16C7e42F292c6912E7710c838347Ae178B4a"


def test_names_that_are_secret_themselves_are_neither_told_nor_kept(
    client: Client, robot: NewAgent, publish: Publish
) -> None:
    tool = {"name": "Open", "description": "Opens", "input": SECRETIVE, "runtime": RUNTIME}
    publish(manifest("Vaults", "1.0.0", tool))
    arguments = {
        "logins": {"hunter2-the-password": 5},
        "vault": {"doors": [{"open sesame": 1}, 5], "other": 6},
        "named": {TOKEN: 1},
        TOKEN: 2,
    }
    response = post(client, OXP, {"request": {"tool_id": "Vaults.Open", "input": arguments}}, robot)
    told = response.json()["parameter_errors"]
    assert told["logins"] == "Must be a string"
    assert told["vault"] == "At 'doors.1': must be an object; at 'other': must be a string"
    kept = Call.objects.get().error + "".join(Event.objects.values_list("detail", flat=True)) + response.text
    assert "must be a string" in kept
    for secret in ("hunter2", "sesame", TOKEN):
        assert secret not in kept
