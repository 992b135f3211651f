"""The whole product at work, once per module, on the database of the run."""

from __future__ import annotations

from collections.abc import Iterator
from uuid import uuid4

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
        name = f"laboratory_{uuid4().hex}"  # stories are told two at a time
        connection.execute(f'CREATE DATABASE "{name}"')
        yield {"DATABASE_URL": database_url.rpartition("/")[0] + f"/{name}", "CELERY_BROKER_URL": broker}
        connection.execute(f'DROP DATABASE "{name}" WITH (FORCE)')


@pytest.fixture(scope="module")
def laboratory(
    request: pytest.FixtureRequest, servers: dict[str, str], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Laboratory]:
    """The product with the lab, for the stories of a module; `SETTINGS` of the module are its own."""
    own: dict[str, str] = getattr(request.module, "SETTINGS", {})
    yield from at_work(tmp_path_factory.mktemp("laboratory"), {**servers, **own})
