"""Flushing: lets Django empty the tables after a test that commits, although triggers guard them against that."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any


def allow() -> None:
    """From now on, and in tests only, a flush of the whole database steps over the triggers."""
    import django.db.models  # noqa: F401  Django's modules refer to each other in a circle; this is the way in
    from django.db.backends.base.operations import BaseDatabaseOperations

    flush = BaseDatabaseOperations.execute_sql_flush

    def execute_sql_flush(self: BaseDatabaseOperations, sql_list: Iterable[str]) -> None:
        with without_triggers(self.connection):
            flush(self, sql_list)

    BaseDatabaseOperations.execute_sql_flush = execute_sql_flush  # type: ignore[method-assign]


@contextmanager
def without_triggers(connection: Any) -> Iterator[None]:
    """What an owner of the database could do as well: change rows with no trigger looking."""
    with connection.cursor() as cursor:
        if connection.vendor == "postgresql":
            cursor.execute("SET session_replication_role = replica")
            try:
                yield
            finally:
                cursor.execute("SET session_replication_role = origin")
            return
        cursor.execute("SELECT name, sql FROM sqlite_master WHERE type = 'trigger'")
        triggers = cursor.fetchall()
        for name, _ in triggers:
            cursor.execute(f'DROP TRIGGER "{name}"')
        try:
            yield
        finally:
            for _, sql in triggers:
                cursor.execute(sql, None)
