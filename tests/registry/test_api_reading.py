"""Lists and pages over REST: found, filtered, ordered, bounded, with a constant number of queries."""

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from rest_framework.test import APIClient

from policy import agents
from registry.models import Tool, Toolkit
from tests.factories.cast import Cast, cast_of
from tests.factories.registry import draft, numbers, published


@pytest.fixture
def cast(db: None) -> Cast:
    """Two toolkits: Calculator 1.0.0 and 1.1.0, and Mail, which the superuser alone sees."""
    published("Calculator", "1.0.0", {"name": "Add", "title": "Add precisely", "capabilities": ["data.read"]})
    published(
        "Calculator",
        "1.1.0",
        {"name": "Add", "capabilities": ["data.read"], "input": numbers("a", "b", c={"type": "number"})},
        {
            "name": "Power",
            "risk": "medium",
            "description": "Raises a number.",
            "input": numbers("base", exponent={"type": "number", "description": "How often it is multiplied."}),
        },
    )
    cast = cast_of(Toolkit.objects.get(name="Calculator"))
    published("Mail", "1.0.0", {"name": "Send", "risk": "high", "capabilities": ["mail.send"]})
    return cast


@pytest.fixture
def api(cast: Cast) -> APIClient:
    return cast.api("superuser")


def ids(client: APIClient, path: str) -> list[str]:
    response = client.get(f"/api/{path}")
    assert response.status_code == 200, response.content
    return [row.get("id") or row["name"] for row in response.json()["results"]]


def test_a_list_is_a_page_with_its_neighbours(api: APIClient) -> None:
    first = api.get("/api/tools/?page_size=2").json()
    assert set(first) == {"count", "next", "previous", "results"}
    assert (first["count"], len(first["results"]), first["previous"]) == (4, 2, None)
    second = api.get(first["next"]).json()
    assert len(second["results"]) == 2
    assert second["next"] is None
    both = [tool["id"] for tool in first["results"] + second["results"]]
    assert both == ["Calculator.Add@1.1.0", "Calculator.Add@1.0.0", "Calculator.Power@1.1.0", "Mail.Send@1.0.0"]


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ("search=power", ["Calculator.Power@1.1.0"]),
        ("search=EXPONENT", ["Calculator.Power@1.1.0"]),
        ("search=often+multiplied", ["Calculator.Power@1.1.0"]),
        ("search=calculator.add", ["Calculator.Add@1.1.0", "Calculator.Add@1.0.0"]),
        ("search=add+precisely", ["Calculator.Add@1.0.0"]),
        ("search=object", []),
        ("search=additionalProperties", []),
        ("search=%25", []),
        ("search=_", []),
        ("toolkit=mail", ["Mail.Send@1.0.0"]),
        ("risk=high", ["Mail.Send@1.0.0"]),
        ("risk_at_least=medium", ["Calculator.Power@1.1.0", "Mail.Send@1.0.0"]),
        ("capability=data.read", ["Calculator.Add@1.1.0", "Calculator.Add@1.0.0"]),
        ("runtime=python", []),
        ("runtime=http&state=published&toolkit=mail", ["Mail.Send@1.0.0"]),
        ("state=withdrawn", []),
        ("ordering=-risk,name&page_size=1", ["Mail.Send@1.0.0"]),
    ],
)
def test_tools_are_found_by_what_they_say_take_and_need(api: APIClient, query: str, found: list[str]) -> None:
    assert ids(api, f"tools/?{query}") == found


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ("toolkit=CALCULATOR", ["Calculator@1.1.0", "Calculator@1.0.0"]),
        ("risk=high", ["Mail@1.0.0"]),
        ("search=power", ["Calculator@1.1.0"]),
        ("state=draft", []),
        ("in_review=true", []),
        ("ordering=version&toolkit=Calculator", ["Calculator@1.0.0", "Calculator@1.1.0"]),
    ],
)
def test_versions_are_filtered_and_ordered(api: APIClient, query: str, found: list[str]) -> None:
    assert ids(api, f"versions/?{query}") == found


def test_a_version_that_two_of_its_tools_match_is_listed_once(api: APIClient) -> None:
    assert ids(api, "versions/?search=calculator") == ["Calculator@1.1.0", "Calculator@1.0.0"]


def test_toolkits_name_the_version_that_a_call_without_one_means(api: APIClient) -> None:
    draft("Calculator", "9.0.0")
    rows = {row["name"]: row["latest_version"] for row in api.get("/api/toolkits/").json()["results"]}
    assert rows == {"Calculator": "1.1.0", "Mail": "1.0.0"}


@pytest.mark.parametrize(
    ("path", "parameter"),
    [
        ("tools/?ordering=description", "ordering"),
        ("tools/?ordering=version__toolkit__owner__password", "ordering"),
        ("tools/?ordering=name;drop table registry_tool", "ordering"),
        ("tools/?ordering=(SELECT 1)", "ordering"),
        ("versions/?ordering=toolkit__name", "ordering"),
        ("tools/?risk=huge", "risk"),
        ("tools/?state=gone", "state"),
        ("tools/?owner__password__startswith=a", "owner__password__startswith"),
        ("tools/?tolkit=Mail", "tolkit"),
        ("versions/?state=1 OR 1=1", "state"),
        ("toolkits/?page=0", "page"),
        ("toolkits/?page=x", "page"),
        ("toolkits/?page=99999999999999999999999", "page"),
        ("toolkits/?page_size=0", "page_size"),
        ("toolkits/?page_size=201", "page_size"),
        ("toolkits/?page_size=-1", "page_size"),
        ("toolkits/?page_size=1e3", "page_size"),
        ("toolkits/?page_size=²", "page_size"),
        ("toolkits/?page=1&page=2", "page"),
        ("tools/?state=published&state=draft", "state"),
        ("toolkits/Calculator/?nope=1", "nope"),
        ("versions/Calculator@1.1.0/?nope=1", "nope"),
        ("tools/Calculator.Add/?nope=1", "nope"),
        ("versions/Calculator@1.1.0/compare/?to=1.0.0&to=1.1.0", "to"),
        ("versions/Calculator@1.1.0/manifest/?form=yaml", "form"),
        ("versions/Calculator@1.1.0/manifest/?format=xml", "format"),
        ("versions/Calculator@1.1.0/compare/?to=Mail@1.0.0", "to"),
        ("versions/Calculator@1.0.0/compare/", "to"),
        ("versions/Calculator@1.1.0/compare/?with=1.0.0", "with"),
    ],
)
def test_a_question_that_makes_no_sense_is_told_which_part(api: APIClient, path: str, parameter: str) -> None:
    response = api.get(f"/api/{path}")
    assert response.status_code == 400
    assert response.json()["errors"][0]["path"] == parameter


@pytest.mark.parametrize(
    "words", ["' OR '1'='1", '"; DROP TABLE registry_tool; --', "%", "\\", "{{7*7}}", "\u202e", "a" * 5000, "\ud7ff"]
)
@pytest.mark.parametrize("place", ["toolkits", "versions", "tools"])
def test_hostile_words_are_only_words(api: APIClient, place: str, words: str) -> None:
    response = api.get(f"/api/{place}/", {"search": words})
    assert response.status_code == 200
    assert response.json()["count"] == 0 or words in "%\\"


def test_a_nul_in_a_search_is_refused_not_a_crash(api: APIClient) -> None:
    for place in ("toolkits", "versions", "tools"):
        assert api.get(f"/api/{place}/", {"search": "a\0b"}).status_code in (200, 400)
        assert api.get(f"/api/{place}/", {"search": "\0"}).status_code in (200, 400)


@pytest.mark.parametrize(
    "path",
    [
        "nowhere/",
        "toolkits/No%20where/",
        "toolkits/Calculator/secrets/",
        "versions/Calculator/",
        "versions/Calculator@1/",
        "versions/Calculator@1.0.0.0/",
        "versions/Calculator@99999999999.0.0/",
        "versions/Calculator@1.0.0%0a/",
        "versions/Calculator@١.0.0/",
        "versions/..%2f..%2fetc/",
        "tools/Calculator/",
        "tools/Calculator.Add@x/",
        "tools/Calculator.Add@9.9.9/",
        "versions/Calculator@1.0.0/compare/?to=nothing",
    ],
)
def test_what_is_not_there_is_answered_in_json(api: APIClient, path: str) -> None:
    response = api.get(f"/api/{path}")
    assert response.status_code == 404
    assert response["Content-Type"] == "application/json"
    assert response.json()["code"] == "not_found"


def test_a_method_that_is_not_there_is_answered_in_json(api: APIClient) -> None:
    for method in ("put", "delete"):
        for path in ("toolkits/Calculator/", "versions/Calculator@1.0.0/", "tools/Calculator.Add/"):
            response = getattr(api, method)(f"/api/{path}")
            assert (response.status_code, response.json()["code"]) == (405, "method_not_allowed")


def test_a_tool_is_found_by_its_id_or_as_the_latest(api: APIClient) -> None:
    assert api.get("/api/tools/calculator.add/").json()["id"] == "Calculator.Add@1.1.0"
    tool = api.get("/api/tools/Calculator.Add@1/").json()
    assert (tool["id"], tool["flat_name"], tool["risk"]) == ("Calculator.Add@1.0.0", "Calculator_Add", "low")
    assert tool["input_schema"] == numbers("a", "b")
    assert tool["runtime"] == {"type": "http", "dispatch": "queue"}


@pytest.mark.parametrize(("stored", "told"), [(True, {}), (False, {"not": {}}), (None, None), ({}, {})])
def test_an_output_that_was_stored_as_true_or_false_is_told_as_an_object(
    api: APIClient, stored: object, told: object
) -> None:
    Tool.objects.filter(version=draft("Calculator", "3.0.0")).update(output_schema=stored)
    listed = {tool["id"]: tool for tool in api.get("/api/tools/").json()["results"]}
    assert listed["Calculator.Add@3.0.0"]["output_schema"] == told


def test_two_versions_are_compared_with_reasons(api: APIClient) -> None:
    forward = api.get("/api/versions/Calculator@1.1.0/compare/?to=Calculator@1.0.0").json()
    backward = api.get("/api/versions/Calculator@1.0.0/compare/?to=Calculator@1.1.0").json()
    for query in ("", "?to=1.0.0"):  # the version before is what one mostly means, and the toolkit need not be said
        assert api.get(f"/api/versions/Calculator@1.1.0/compare/{query}").json() == forward
    assert (forward["level"], backward["level"]) == ("safe", "breaking")
    assert any("Power" in reason for reason in backward["reasons"])


@pytest.mark.parametrize("path", ["toolkits/", "versions/", "tools/", "agents/"])
def test_a_longer_list_takes_no_more_queries(cast: Cast, path: str) -> None:
    counts = []
    for size in (1, 6):
        for number in range(size):
            published(f"More{size}x{number}", "1.0.0", {"name": "A", "capabilities": ["data.read"]}, {"name": "B"})
            agents.create(f"more{size}x{number}", actor="shell")
        client = cast.api("superuser")
        with CaptureQueriesContext(connection) as queries:
            assert client.get(f"/api/{path}").status_code == 200
        counts.append(len(queries))
    assert counts[0] == counts[1] <= 8


def test_the_schema_needs_a_login_and_is_valid(cast: Cast) -> None:
    assert cast.api("anonymous").get("/api/schema/").status_code == 401
    response = cast.api("agent").get("/api/schema/", HTTP_ACCEPT="application/json")
    assert response.status_code == 200
    assert "/api/toolkits/" in response.json()["paths"]
    assert "127.0.0.1:9" not in response.content.decode()


def test_the_docs_need_a_login_and_fetch_nothing_from_elsewhere(cast: Cast) -> None:
    assert cast.api("anonymous").get("/api/docs/").status_code == 302
    page = cast.api("viewer").get("/api/docs/")
    assert page.status_code == 200
    assert "//cdn" not in page.content.decode()
    assert "/static/drf_spectacular_sidecar/" in page.content.decode()


def test_answers_are_json_even_for_a_browser(cast: Cast) -> None:
    response = cast.api("superuser").get("/api/toolkits/", HTTP_ACCEPT="text/html,*/*;q=0.8")
    assert response["Content-Type"] == "application/json"
