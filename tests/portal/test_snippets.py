"""Calls to copy: they say the tool and what it takes, and no text of a publisher breaks out of its quotes."""

import ast
import json
import shlex

import pytest

from execution.portal.snippets import snippets
from registry.models import Tool
from tests.factories.registry import draft, numbers

pytestmark = pytest.mark.django_db

NASTY = "'; rm -rf ~ #\"$(reboot)`x`\\\n\u202e"


def texts(tool: Tool) -> dict[str, str]:
    return {each.key: each.text for each in snippets(tool, "https://placet.example")}


def made(**fields: object) -> Tool:
    return draft("Calculator", "1.0.0", {"name": "Add", **fields}).tools.get()


def test_each_way_to_call_says_the_same() -> None:
    told = texts(made())
    words = shlex.split(told["curl"])
    assert words[2] == "https://placet.example/tools/call"
    body = json.loads(words[-1])
    assert body == {"request": {"tool_id": "Calculator.Add@1.0.0", "input": {"a": 1, "b": 1}}}
    assert "https://placet.example/tools/call" in told["python"]
    ast.parse(told["python"])
    config = json.loads(told["mcp-config"])["mcpServers"]["placet"]
    assert config["url"] == "https://placet.example/mcp"
    params = json.loads(told["mcp-call"])["params"]
    assert params == {"name": "Calculator_Add", "arguments": {"a": 1, "b": 1}}


def test_hostile_examples_stay_inside_their_quotes() -> None:
    told = texts(made(input=numbers(word={"type": "string", "default": NASTY}) | {"required": ["word"]}))
    body = json.loads(shlex.split(told["curl"])[-1])
    assert body["request"]["input"] == {"word": NASTY}
    assigned = next(node for node in ast.walk(ast.parse(told["python"])) if isinstance(node, ast.Assign))
    assert isinstance(assigned.value, ast.Call)
    assert json.loads(ast.literal_eval(assigned.value.args[0])) == body


def test_what_the_caller_brings_has_a_place() -> None:
    needs = {"authorization": [{"id": "google"}], "secrets": [{"id": "KEY"}], "userId": True}
    told = texts(made(requirements=needs, nonInferrable=["b"]))
    asked = json.loads(shlex.split(told["curl"])[-1])["request"]
    assert asked["context"] == {
        "authorization": [{"id": "google", "token": "<google>"}],
        "secrets": [{"id": "KEY", "value": "<KEY>"}],
        "user_id": "<user id>",
    }
    params = json.loads(told["mcp-call"])["params"]
    assert params["arguments"] == {"a": 1}
    assert params["_meta"]["placet.dev/arguments"] == {"b": 1}


def test_a_schema_that_nothing_simple_fits_still_gives_a_call() -> None:
    told = texts(made(input={"type": "object", "properties": {"x": False}, "required": ["x"]}))
    assert json.loads(shlex.split(told["curl"])[-1])["request"]["input"] == {}
