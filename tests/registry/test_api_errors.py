"""What a program under /api/ is told when something fails that is not its fault, and in which form."""

import logging
from typing import Any

import pytest
from django.contrib.sessions.backends.db import SessionStore
from django.db import InterfaceError, OperationalError

from config.logs import LineFormatter
from registry import revision, toolkits
from registry.models import Toolkit
from tests.factories.cast import Cast, cast_of
from tests.factories.registry import published


@pytest.fixture
def cast(db: None) -> Cast:
    published("Calculator", "1.0.0")
    return cast_of(Toolkit.objects.get(name="Calculator"))


@pytest.mark.parametrize("error", [OperationalError("host db-7"), InterfaceError("host db-7")])
@pytest.mark.parametrize(
    ("role", "place", "name"),
    [
        ("superuser", toolkits, "create"),
        ("superuser", SessionStore, "load"),
        ("agent", revision, "current"),
    ],
)
def test_a_database_that_is_away_is_503_wherever_it_is_missed(
    cast: Cast,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    error: Exception,
    role: str,
    place: Any,
    name: str,
) -> None:
    def away(*_: Any, **__: Any) -> None:
        raise error

    api = cast.api(role)
    monkeypatch.setattr(place, name, away)
    answer = api.post("/api/toolkits/", {"name": "Kit"}, format="json")
    assert (answer.status_code, answer["Retry-After"], answer.json()["code"]) == (503, "2", "unavailable")
    assert "db-7" not in answer.content.decode()
    told = [LineFormatter().format(record) for record in caplog.records if record.levelno >= logging.ERROR]
    assert any("the database did not answer: host db-7" in line for line in told)
    assert not any("Traceback" in line for line in told)
    assert not Toolkit.objects.filter(name="Kit").exists()


@pytest.mark.parametrize("path", ["/api/calls/", "/api/toolkits/"])
def test_of_many_unknown_fields_ten_are_named_shortly_and_the_others_counted(cast: Cast, path: str) -> None:
    api = cast.api("superuser" if "toolkits" in path else "agent")
    answer = api.post(path, {"x" * 10_000: 1, **{f"field{number}": 1 for number in range(60_000)}}, format="json")
    assert (answer.status_code, answer.json()["code"]) == (422, "invalid")
    names = [each["path"] for each in answer.json()["errors"]]
    assert names == ["x" * 100, *(f"field{number}" for number in range(9)), ""]
    assert answer.json()["errors"][-1]["reason"] == "59991 more fields are unknown."
    assert len(answer.content) < 5_000


def test_an_unknown_field_of_a_manifest_is_named_shortly(cast: Cast) -> None:
    answer = cast.api("publisher").post("/api/manifests/", {"x" * 500_000: 1}, format="json")
    assert answer.json()["errors"][0]["path"] == "x" * 300 + "…"
    assert len(answer.content) < 1_000


def test_of_many_errors_the_first_are_told_and_the_others_counted(cast: Cast) -> None:
    body = {"tool_id": "Calculator.Add", "context": {"secrets": [{}] * 20_000}}
    answer = cast.api("agent").post("/api/calls/", body, format="json")
    errors = answer.json()["errors"]
    assert (answer.status_code, len(errors)) == (422, 51)
    assert errors[0] == {"path": "context.secrets.0.id", "reason": "This field is required."}
    assert errors[-1] == {"path": "", "reason": "There are 39950 more errors."}
    assert len(answer.content) < 20_000


def test_a_value_that_an_error_repeats_is_cut_off(cast: Cast) -> None:
    body = {"holder": "user:viewer", "permission": "x" * 500_000}
    answer = cast.api("superuser").post("/api/toolkits/Calculator/permissions/", body, format="json")
    assert (answer.status_code, answer.json()["errors"][0]["path"]) == (422, "permission")
    assert len(answer.content) < 3_000


@pytest.mark.parametrize(
    ("role", "path", "accepts", "status"),
    [
        ("anonymous", "/api/schema/", "*/*", 401),
        ("agent", "/api/schema/?format=xml", "*/*", 400),
        ("agent", "/api/schema/", "text/html", 406),
        ("superuser", "/api/versions/Calculator@9.0.0/manifest/?format=yaml", "*/*", 404),
        ("anonymous", "/api/audit/events/export/?format=csv", "text/csv", 401),
        ("superuser", "/api/audit/events/export/?format=xml", "*/*", 400),
    ],
)
def test_an_error_is_json_also_where_answers_are_something_else(
    cast: Cast, role: str, path: str, accepts: str, status: int
) -> None:
    answer = cast.api(role).get(path, HTTP_ACCEPT=accepts)
    assert (answer.status_code, answer["Content-Type"]) == (status, "application/json")
    assert {"code", "message"} <= set(answer.json())


def test_so_is_that_of_a_method_that_a_page_does_not_have(cast: Cast) -> None:
    for path in ("/api/schema/", "/api/docs/"):
        answer = cast.api("superuser").post(path, {}, format="json")
        assert (answer.status_code, answer["Content-Type"]) == (405, "application/json")
        assert answer.json()["code"] == "method_not_allowed"
