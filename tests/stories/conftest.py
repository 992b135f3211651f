"""The whole product at work, once per module, on the database of the run."""

from __future__ import annotations

from collections.abc import Iterator

import psycopg
import pytest

from tests.services import redis
from tests.stories.laboratory import Laboratory, at_work


@pytest.fixture(scope="module")
def servers(database_url: str) -> Iterator[dict[str, str]]:
    """A database of its own on the run's server and a Redis of its own; with SQLite, nothing."""
    if not database_url:
        yield {}
        return
    with redis() as broker, psycopg.connect(database_url, autocommit=True) as connection:
        connection.execute("CREATE DATABASE laboratory")
        yield {"DATABASE_URL": database_url.rpartition("/")[0] + "/laboratory", "CELERY_BROKER_URL": broker}
        connection.execute("DROP DATABASE laboratory WITH (FORCE)")


@pytest.fixture(scope="module")
def laboratory(servers: dict[str, str], tmp_path_factory: pytest.TempPathFactory) -> Iterator[Laboratory]:
    """The product with the lab, for the stories of a module."""
    yield from at_work(tmp_path_factory.mktemp("laboratory"), servers)
