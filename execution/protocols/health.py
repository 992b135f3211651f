"""Health: is this server ready for calls? Asked of the database each time, and answered in time."""

import logging
from concurrent.futures import Future, ThreadPoolExecutor
from concurrent.futures import TimeoutError as TooSlow
from threading import Lock

from django.db import connection
from django.db.migrations.executor import MigrationExecutor

WITHIN = 3.0  # seconds

log = logging.getLogger(__name__)


class Probe:
    """Asks the database from a thread of its own, so that one that hangs cannot hold a door; one question at a time."""

    def __init__(self, within: float = WITHIN) -> None:
        self._within = within
        self._lock = Lock()
        self._asked: Future[bool] | None = None
        self._is_migrated = False

    def is_ready(self) -> bool:
        with self._lock:
            asked = self._asked
            if asked is None or asked.done():
                thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="health")
                asked = self._asked = thread.submit(self._ask)
                thread.shutdown(wait=False)
        try:
            return asked.result(timeout=self._within)
        except TooSlow:
            log.error("the database did not answer within %s s", self._within)
            return False

    def _ask(self) -> bool:
        try:
            return self._look()
        except Exception as error:  # whatever it is, we are not ready
            log.error("the database did not answer: %s", error)
            return False
        finally:
            connection.close()

    def _look(self) -> bool:
        """Tables are there, and can be read. That all migrations ran is remembered: they do not go away."""
        if not self._is_migrated:
            executor = MigrationExecutor(connection)
            self._is_migrated = not executor.migration_plan(executor.loader.graph.leaf_nodes())
        with connection.cursor() as cursor:
            cursor.execute("SELECT 1 FROM django_migrations LIMIT 1")
            return self._is_migrated and cursor.fetchone() is not None
