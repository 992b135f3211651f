"""The worker's entry point; its timetable is CELERY_BEAT_SCHEDULE."""

import gc
import os
from typing import Any

from celery import Celery
from celery.signals import setup_logging, task_prerun, worker_init, worker_process_shutdown

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings.local")
# The checks would load every page and view, which no worker needs: a third of its start and a sixth of its memory.
os.environ.setdefault("CELERY_SKIP_CHECKS", "1")

app = Celery("placet")
app.config_from_object("django.conf:settings", namespace="CELERY")
app.autodiscover_tasks(["execution", "policy"])
# Celery closes the database after each task; connecting anew costs more than most tasks (see _drop_broken_connections).
app.conf["CELERY_DB_REUSE_MAX"] = 1_000_000_000


@worker_init.connect
def _load_before_forking(**_: Any) -> None:
    """What every child needs is loaded once, before they are forked, and shared by all of them."""
    from audit import sealing  # noqa: F401
    from execution import hooks, packs, sweeping, telemetry  # noqa: F401
    from execution.pipeline import answering, perform  # noqa: F401
    from policy import delivery, replays  # noqa: F401

    telemetry.load()
    hooks.load()
    _use_a_pool_that_endures()
    gc.collect()
    gc.freeze()


def _use_a_pool_that_endures() -> None:
    """Where the broker has to be polled; with another one, each child has pipes of its own and shares no lock."""
    from celery.concurrency.prefork import TaskPool

    from config.pool import EnduringPool

    TaskPool.BlockingPool = EnduringPool


@task_prerun.connect
def _drop_broken_connections(task: Any, **_: Any) -> None:
    """As Django does for a request: a connection that failed is not used again."""
    from django.db import close_old_connections

    if not task.request.is_eager:  # else the connection is its caller's
        close_old_connections()


@worker_process_shutdown.connect
def _leave_nothing(**_: Any) -> None:
    """A child ends without a farewell, so what it has yet to tell is told now, and its tool hosts go."""
    from execution import telemetry
    from execution.runtimes import hosts

    telemetry.flush()
    hosts.end_all()


@setup_logging.connect
def _use_our_logging(**_: Any) -> None:
    """Celery would install its own handlers; Django's settings already say how we log."""
    from logging.config import dictConfig

    from django.conf import settings

    dictConfig(settings.LOGGING)
