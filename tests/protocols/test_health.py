"""/health is open to everyone, true, and answers in time."""

import time
from threading import Event

import pytest
from django.db import connection
from django.test import Client

from execution.protocols import health
from execution.protocols.oxp.views import HealthView

pytestmark = pytest.mark.django_db


def test_r1_r2_health_is_200_without_a_credential(client: Client) -> None:
    response = client.get("/health")
    assert response.status_code == 200
    assert response.json() == {"$schema": "urn:oxp:1.0", "status": "ok"}
    assert client.head("/health").status_code == 200


def test_r2_a_bad_credential_does_not_matter(client: Client) -> None:
    assert client.get("/health", headers={"Authorization": "Bearer nonsense"}).status_code == 200


def test_r3_a_database_that_refuses_makes_it_503(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    class Away(health.Probe):
        def _look(self) -> bool:
            raise ConnectionError("refused")

    monkeypatch.setattr(HealthView, "probe", Away())
    response = client.get("/health")
    assert response.status_code == 503
    assert response.json() == {"$schema": "urn:oxp:1.0", "status": "unavailable"}
    assert response["Retry-After"] == "2"


def test_r3_a_database_that_hangs_makes_it_503_in_time_and_holds_one_thread_only(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    release, asked = Event(), []

    class Hanging(health.Probe):
        def _look(self) -> bool:
            asked.append(1)
            return release.wait(10)

    probe = Hanging(within=0.1)
    monkeypatch.setattr(HealthView, "probe", probe)
    before = time.perf_counter()
    assert [client.get("/health").status_code for _ in range(3)] == [503, 503, 503]
    assert time.perf_counter() - before < 2
    assert len(asked) == 1
    release.set()
    deadline = time.perf_counter() + 5
    while client.get("/health").status_code != 200 and time.perf_counter() < deadline:
        time.sleep(0.01)
    assert client.get("/health").status_code == 200


def test_r3_a_database_that_lacks_a_migration_is_not_ready() -> None:
    assert health.Probe()._look() is True
    with connection.cursor() as cursor:
        cursor.execute("DELETE FROM django_migrations WHERE app = 'execution'")
    assert health.Probe()._look() is False
