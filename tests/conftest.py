"""One run is one database: PLACET_TEST_DATABASE=sqlite (the default) or postgres, which brings PostgreSQL 18 and Redis.

Only loopback is reachable; a test that cannot run on this machine is named at the end; a plain skip is a failure.
"""

from __future__ import annotations

import gc
import os
import tempfile
from collections.abc import Generator, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any, TypeVar

import pytest
from hypothesis import HealthCheck, settings

from config.reaper import Reaper
from tests import loopback, needs, once
from tests.services import postgres, redis

DATABASES = ("sqlite", "postgres")
NOT_RUN = pytest.StashKey[list[tuple[str, str]]]()
ELSEWHERE = pytest.StashKey[int]()
Report = TypeVar("Report", pytest.TestReport, pytest.CollectReport)
RESOURCES = pytest.StashKey[ExitStack]()

# What an example takes on a busy machine says nothing about the product.
settings.register_profile("placet", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("placet")


@pytest.hookimpl(tryfirst=True)
def pytest_configure(config: pytest.Config) -> None:
    """Before Django reads its settings: the database, the broker and a home of this process's own."""
    config.stash[NOT_RUN] = []
    config.stash[ELSEWHERE] = 0
    resources = config.stash[RESOURCES] = ExitStack()
    loopback.guard()
    reaper = Reaper()
    resources.callback(reaper.close)
    home = Path(tempfile.mkdtemp(prefix="placet-test-"))
    reaper.folder(home)
    os.environ["PLACET_HOME"] = str(home)
    if not hasattr(config, "workerinput"):  # the processes of a parallel run share the servers of the first one
        os.environ.pop("DATABASE_URL", None)
        os.environ.pop("CELERY_BROKER_URL", None)
        if _database() == "postgres":
            os.environ["DATABASE_URL"] = resources.enter_context(postgres())
            os.environ["CELERY_BROKER_URL"] = resources.enter_context(redis())
    os.environ["DJANGO_SETTINGS_MODULE"] = "config.settings.test"
    from django.conf import settings

    assert settings.INSTALLED_APPS  # read now, for pytest-django sets Django up only where the settings were read
    from tests import flushing

    flushing.allow()


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_setupnodes() -> None:
    """Each process of a parallel run reads the settings for itself, once it has a home of its own."""
    os.environ.pop("DJANGO_SETTINGS_MODULE", None)


def pytest_unconfigure(config: pytest.Config) -> None:
    if RESOURCES in config.stash:
        config.stash[RESOURCES].close()


def pytest_report_header() -> str:
    return f"database: {_database()}"


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    config.stash[NOT_RUN] += needs.take_out(items)
    if _database() != "sqlite":
        kept = [item for item in items if _touches_the_database(item) and not once.is_enough(item)]
        config.stash[ELSEWHERE] = len(items) - len(kept)
        items[:] = kept


def pytest_collection_finish() -> None:
    """Thousands of tests stay in memory to the end: the collector of garbage need not look at them again and again."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(20_000, 10, 10)  # and seldom at the rest: a test leaves little behind


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    return _without_excuses(report)


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report() -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
    report = yield
    return _without_excuses(report)


def pytest_sessionfinish(session: pytest.Session) -> None:
    if hasattr(session.config, "workeroutput"):
        session.config.workeroutput["not_run"] = session.config.stash[NOT_RUN]
        session.config.workeroutput["elsewhere"] = session.config.stash[ELSEWHERE]


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any) -> None:
    """Every process of a parallel run collects the same tests: one account of them is enough."""
    output = getattr(node, "workeroutput", {})
    node.config.stash[NOT_RUN] = [tuple(pair) for pair in output.get("not_run", [])] or node.config.stash[NOT_RUN]
    node.config.stash[ELSEWHERE] = output.get("elsewhere", 0) or node.config.stash[ELSEWHERE]


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    if elsewhere := config.stash[ELSEWHERE]:
        terminalreporter.write_line(
            f"{elsewhere} tests that touch no database, or need only one (tests/once.py), run with SQLite only"
        )
    if not_run := config.stash[NOT_RUN]:
        terminalreporter.section("not run", yellow=True)
        for nodeid, reason in not_run:
            terminalreporter.write_line(f"{nodeid}: {reason}")


@pytest.fixture(autouse=True)
def _no_threads_of_our_own(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Listening and beating happen on connections of their own, which cannot see a test's transaction.

    A test that is about them commits for real and asks for the fixture `threads_of_our_own`.
    """
    if "threads_of_our_own" not in request.fixturenames:
        monkeypatch.setattr("execution.bell._start", lambda: None)
        monkeypatch.setattr("execution.pulse._start", lambda: None)


@pytest.fixture(autouse=True)
def _rings_are_heard(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """As if the bell's thread listened: a lost ring costs a waiting door a second, and that in hundreds of tests.

    It is lost in a transaction that is rolled back, and on PostgreSQL, where this process does not hear itself.
    """
    if "threads_of_our_own" in request.fixturenames:
        return
    from django.db import connection, transaction

    from execution import bell

    ring = bell.ring

    def ring_here(topic: str, *, is_local: bool = False) -> None:
        ring(topic, is_local=is_local)
        if any(getattr(block, "_from_testcase", False) for block in connection.atomic_blocks):
            bell._heard(topic)
        elif connection.vendor == "postgresql" and not is_local:
            transaction.on_commit(lambda: bell._heard(topic))

    monkeypatch.setattr(bell, "ring", ring_here)


@pytest.fixture(autouse=True)
def _heartbeats_are_heard(monkeypatch: pytest.MonkeyPatch) -> None:
    """As in a web process that has served for long: who is silent has only itself to blame."""
    monkeypatch.setattr("execution.sessions.hearing._since", float("-inf"))


@pytest.fixture(autouse=True)
def _no_seals_of_events_that_are_gone() -> Iterator[None]:
    """A test's events go with it; so does the file that says they were there."""
    yield
    Path(os.environ["PLACET_HOME"], "seals.jsonl").unlink(missing_ok=True)


@pytest.fixture(scope="session", autouse=True)
def _counters_are_at_home() -> None:
    """They stay where the first call of a process finds its home, and that call may be of a test that moved it."""
    from execution.telemetry import metrics

    assert metrics.load() is not None


@pytest.fixture(scope="session", autouse=True)
def _the_bell_is_put_away() -> Iterator[None]:
    """A process of the product has it as long as it lives; one of tests would warn of an open socket as it ends."""
    yield
    from execution import bell

    if bell._mouth is not None and bell._mouth[0] == os.getpid():
        bell._mouth[1].close()
        os.close(bell._mouth[2])
        bell._mouth = None


@pytest.fixture(scope="session", autouse=True)
def _urls_are_loaded() -> None:
    """The first request of a process imports every view; no test that measures time should pay for it."""
    from django.urls import get_resolver

    assert get_resolver().url_patterns


@pytest.fixture
def threads_of_our_own(transactional_db: None) -> None:
    """The bell's and the pulse's threads run as in the product."""


@pytest.fixture(scope="session")
def django_db_keepdb() -> bool:
    """A database on PostgreSQL goes with its server; to drop it before, every listener would have to be gone."""
    return _database() == "postgres"


@pytest.fixture(scope="session")
def database_url() -> str:
    """The database server of this run for a test that starts processes of its own; empty means SQLite in its home."""
    return os.environ.get("DATABASE_URL", "")


def _database() -> str:
    name = os.environ.get("PLACET_TEST_DATABASE", "sqlite")
    if name not in DATABASES:
        raise pytest.UsageError(f"PLACET_TEST_DATABASE must be one of {', '.join(DATABASES)}, not {name!r}")
    return name


def _touches_the_database(item: pytest.Item) -> bool:
    fixtures = getattr(item, "fixturenames", [])
    return item.get_closest_marker("django_db") is not None or not {
        "db",
        "transactional_db",
        "database_url",
    }.isdisjoint(fixtures)


def _without_excuses(report: Report) -> Report:
    """A skip or an expected failure hides a test; it must say what it needs instead."""
    if report.outcome == "skipped" or hasattr(report, "wasxfail"):
        report.outcome = "failed"
        report.longrepr = (
            f"skipped or expected to fail: {report.longrepr or 'it passed'}. Use @pytest.mark.needs(...) instead."
        )
        vars(report).pop("wasxfail", None)
    return report
