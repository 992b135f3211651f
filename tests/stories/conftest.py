"""The whole product at work, once per module, on the database of the run."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

from tests.services import redis
from tests.stories.laboratory import Laboratory, at_work
from tests.stories.prepared import Prepared

# The files that take longest go first, so that none is left alone at the end of a parallel run. Browsers keep the
# machine busy, other stories mostly wait, so they take turns; the one that compares how long calls take goes last, when
# the machine has least to do.
ORDER = (
    *("test_portal_browser", "test_lost_servers", "test_mcp_clients", "test_lost_processes"),
    *("test_inbox_browser", "test_pulling", "test_make_run", "test_mcp_streams", "test_evidence_browser"),
    *("test_campaign", "test_publish_browser", "test_late_answers", "test_hostile_answers", "test_policy_browser"),
    *("test_waiting", "test_keys_browser", "test_approvals", "test_catalogue_browser", "test_bridge"),
    *("test_brought_secrets", "test_failing_tool"),
)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    places = {name: place for place, name in enumerate(ORDER)}
    items.sort(key=lambda item: places.get(item.path.stem, len(places)))


@pytest.fixture(scope="session")
def prepared(database_url: str, tmp_path_factory: pytest.TempPathFactory) -> Prepared:
    """What every laboratory begins with, made once for all processes of a run."""
    own = tmp_path_factory.getbasetemp()
    return Prepared((own.parent if "PYTEST_XDIST_WORKER" in os.environ else own) / "prepared", database_url)


@pytest.fixture(scope="module")
def servers(database_url: str, prepared: Prepared) -> Iterator[dict[str, str]]:
    """A database of its own on the run's server and a Redis of its own; with SQLite, nothing."""
    if not database_url:
        yield {}
        return
    with redis() as broker, prepared.database() as database:
        yield {"DATABASE_URL": database, "CELERY_BROKER_URL": broker}


@pytest.fixture(scope="module")
def laboratory(
    request: pytest.FixtureRequest,
    servers: dict[str, str],
    prepared: Prepared,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Laboratory]:
    """The product with the lab, for the stories of a module; `SETTINGS` of the module are its own."""
    own: dict[str, str] = getattr(request.module, "SETTINGS", {})
    yield from at_work(tmp_path_factory.mktemp("laboratory"), {**servers, **own}, prepared)
