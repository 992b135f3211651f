"""Recorded conversations, the specifications' own examples first, replayed word for word."""

import json
from pathlib import Path
from typing import Any

import pytest
from django.test import Client

from policy.agents import NewAgent
from tests.protocols.specification import must_be
from tests.protocols.toolkits import Hands
from tests.protocols.wire import post

pytestmark = pytest.mark.django_db

GOLDEN = Path(__file__).parent / "golden"
# What we may say beyond an example: the objects are open, and the rest of the suite says when.
EXTENSIONS = {"code", "call_id", "developer_message", "parameter_errors", "warnings"}
KINDS = {200: "CallToolResult", 400: "ServerErrorResponse", 422: "ValidationErrorResponse"}


def conversations() -> list[Any]:
    found = []
    for file in sorted(GOLDEN.glob("*/*.json")):
        told = json.loads(file.read_text())
        for path in told["paths"]:
            found.append(pytest.param(told, path, id=f"{file.parent.name}-{file.stem} {path}"))
    return found


def must_match(expected: Any, found: Any, texts: list[str], where: str = "") -> None:
    """Everything that the example says is said; more only where the specification leaves room. Times are measured."""
    if isinstance(expected, dict):
        assert isinstance(found, dict), where
        assert expected.keys() <= found.keys(), where
        if where not in ("/result/value", "/output/value"):
            measured = {"duration"} if texts else set()
            assert found.keys() - expected.keys() <= EXTENSIONS | measured, where
        for key, value in expected.items():
            must_match(value, found[key], texts, f"{where}/{key}")
    elif where.endswith(("/duration", "/duration_ms")):
        assert isinstance(found, int | float)
        assert found >= 0
    elif where.rpartition("/")[2] in texts:
        assert isinstance(found, str), where
        assert found, where
    else:
        assert found == expected, where
        assert type(found) is type(expected), where


@pytest.mark.parametrize(("told", "path"), conversations())
def test_a_recorded_conversation_goes_as_it_went(
    client: Client, robot: NewAgent, hands: Hands, told: dict[str, Any], path: str
) -> None:
    response = post(client, path, told["request"], robot)
    assert response.status_code == told["status"], response.content
    must_match(told["response"], response.json(), told.get("texts", []))
    if told["response"].get("$schema") == "urn:oxp:1.0":
        must_be(KINDS[told["status"]], response.json())
        must_be(KINDS[told["status"]], told["response"])


def test_the_specifications_examples_are_all_here() -> None:
    sources = [param.values[0]["source"] for param in conversations() if param.values[1] == param.values[0]["paths"][0]]
    assert sum(source.startswith("OXP 1.0") for source in sources) == 4
    assert sum(source.startswith("RFC") for source in sources) == 2
    assert sum(source.startswith("Tool Contract v1") for source in sources) == 2
