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
