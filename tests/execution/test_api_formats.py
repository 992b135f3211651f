"""GET /api/tools/?format=…: what an agent may call, as the APIs of models take it."""

from __future__ import annotations

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from rest_framework.test import APIClient

from policy import agents
from registry.models import Toolkit
from tests.factories.cast import Cast, cast_of
from tests.factories.registry import numbers, published

SCHEMA = numbers("a", "b")


@pytest.fixture
def cast(db: None) -> Cast:
    published("Calculator", "1.0.0", {"name": "Add", "description": "Adds once."})
    published(
        "Calculator",
        "1.1.0",
        {"name": "Add"},
        {"name": "Sum", "input": numbers("a", "owner"), "nonInferrable": ["owner"]},
    )
    cast = cast_of(Toolkit.objects.get(name="Calculator"))
    published("Mail", "1.0.0", {"name": "Send"})
    return cast


@pytest.mark.parametrize("form", ["openai", "ollama"])
def test_functions_for_chat_completions(cast: Cast, form: str) -> None:
    told = cast.api("agent").get(f"/api/tools/?format={form}").json()
    assert told["format"] == form
    assert [tool["function"]["name"] for tool in told["tools"]] == ["Calculator_Add", "Calculator_Sum"]
    assert told["tools"][0] == {
        "type": "function",
        "function": {"name": "Calculator_Add", "description": "Adds two numbers together.", "parameters": SCHEMA},
    }


def test_tools_for_anthropic_leave_out_what_a_model_must_not_fill_in(cast: Cast) -> None:
    add, total = cast.api("agent").get("/api/tools/?format=anthropic").json()["tools"]
    assert add == {"name": "Calculator_Add", "description": "Adds two numbers together.", "input_schema": SCHEMA}
    assert list(total["input_schema"]["properties"]) == total["input_schema"]["required"] == ["a"]


def test_tools_for_mcp_are_those_of_its_newest_revision(cast: Cast) -> None:
    add = cast.api("agent").get("/api/tools/?format=mcp").json()["tools"][0]
    assert (add["name"], add["inputSchema"], add["outputSchema"]) == ("Calculator_Add", SCHEMA, {"type": "number"})
    assert add["annotations"]["readOnlyHint"] is False


def test_an_unknown_format_is_refused_with_those_there_are(cast: Cast) -> None:
    refused = cast.api("agent").get("/api/tools/?format=gemini")
    assert refused.status_code == 400
    assert refused.json()["errors"] == [
        {"path": "format", "reason": "Ask for json or openai or anthropic or ollama or mcp."}
    ]
    assert cast.api("agent").get("/api/tools/Calculator.Add/?format=openai").status_code == 400


def test_other_parameters_are_refused_rather_than_passed_over(cast: Cast) -> None:
    refused = cast.api("agent").get("/api/tools/?format=openai&toolkit=Calculator")
    assert refused.status_code == 400
    assert refused.json()["errors"][0]["path"] == "toolkit"


def test_people_are_told_that_this_is_for_agents(cast: Cast) -> None:
    assert cast.api("publisher").get("/api/tools/?format=openai").status_code == 403
    assert cast.api("anonymous").get("/api/tools/?format=openai").status_code == 401


def test_an_agent_without_permission_gets_an_empty_list(cast: Cast) -> None:
    stranger = APIClient()
    stranger.credentials(HTTP_AUTHORIZATION=f"Bearer {agents.create('nobody', actor='shell').key}")
    assert stranger.get("/api/tools/?format=mcp").json() == {"format": "mcp", "tools": []}


def test_the_list_as_it_was_is_the_default(cast: Cast) -> None:
    api = cast.api("agent")
    assert api.get("/api/tools/?format=json").json() == api.get("/api/tools/").json()
    assert api.get("/api/tools/").json()["count"] == 3


def test_a_second_list_asks_for_the_revision_and_the_agent_only(cast: Cast) -> None:
    api = cast.api("agent")
    api.get("/api/tools/?format=openai")
    with CaptureQueriesContext(
        connection,
    ) as queries:
        api.get("/api/tools/?format=openai")
    assert len(queries) <= 3, [query["sql"] for query in queries]


def test_the_schema_names_the_formats(cast: Cast) -> None:
    schema = cast.api("superuser").get("/api/schema/?format=json").json()
    (format_,) = [each for each in schema["paths"]["/api/tools/"]["get"]["parameters"] if each["name"] == "format"]
    assert sorted(format_["schema"]["enum"]) == ["anthropic", "json", "mcp", "ollama", "openai"]
