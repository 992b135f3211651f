"""Mcp-Param-*: arguments that a modern client repeats in headers, and headers that say something else."""

from __future__ import annotations

from typing import Any

import pytest

from execution.models import Call
from tests.mcp.desk import modern_call
from tests.mcp.taskkit import LegacyClient

pytestmark = pytest.mark.django_db


@pytest.mark.parametrize(
    ("arguments", "headers"),
    [
        ({}, {}),
        ({"region": "eu"}, {"Mcp-Param-Region": "eu"}),
        ({"region": "eu"}, {"MCP-PARAM-REGION": " eu "}),
        ({"region": "zürich"}, {"Mcp-Param-Region": "=?base64?esO8cmljaA==?="}),
        ({"region": ""}, {"Mcp-Param-Region": ""}),
        ({"shelf": 42}, {"Mcp-Param-Shelf-Number": "42"}),
        ({"shelf": 42}, {"Mcp-Param-Shelf-Number": "42.0"}),
        ({"shelf": 9007199254740993}, {"Mcp-Param-Shelf-Number": "9007199254740993"}),
        ({"is_far": True, "region": "a"}, {"Mcp-Param-Far": "true", "Mcp-Param-Region": "a"}),
    ],
)
def test_arguments_that_are_repeated_in_headers_pass(
    key: str, arguments: dict[str, Any], headers: dict[str, str]
) -> None:
    answer = modern_call(key, "Desk_Route", arguments, headers=headers)
    assert answer.status_code == 200, answer.content
    assert answer.json()["result"]["structuredContent"] == arguments


@pytest.mark.parametrize(
    ("arguments", "headers"),
    [
        ({"region": "eu"}, {}),
        ({"region": "eu"}, {"Mcp-Param-Region": "us"}),
        ({"region": "eu"}, {"Mcp-Param-Region": "EU"}),
        ({"region": "eu"}, {"Mcp-Param-Region": "=?base64?!!?="}),
        ({}, {"Mcp-Param-Region": "eu"}),
        ({"shelf": 42}, {"Mcp-Param-Shelf-Number": "43"}),
        ({"shelf": 42}, {"Mcp-Param-Shelf-Number": "0x2a"}),
        ({"shelf": 9007199254740993}, {"Mcp-Param-Shelf-Number": "9007199254740992"}),
        ({"is_far": True}, {"Mcp-Param-Far": "True"}),
        ({"is_far": True}, {"Mcp-Param-Far": "1"}),
    ],
)
def test_a_header_that_says_something_else_stops_the_call(
    key: str, arguments: dict[str, Any], headers: dict[str, str]
) -> None:
    answer = modern_call(key, "Desk_Route", arguments, headers=headers)
    assert (answer.status_code, answer.json()["error"]["code"]) == (400, -32020)
    assert "Mcp-Param-" in answer.json()["error"]["message"]
    assert Call.objects.count() == 0


def test_older_clients_need_no_such_headers(key: str) -> None:
    assert LegacyClient(key).call("Desk_Route", {"region": "eu"}).result["structuredContent"] == {"region": "eu"}


def test_an_argument_that_is_null_has_no_header_and_is_judged_by_the_tools_schema(key: str) -> None:
    answer = modern_call(key, "Desk_Route", {"region": None})
    assert answer.status_code == 200
    assert answer.json()["result"]["isError"] is True
