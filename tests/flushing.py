"""Flushing: lets Django empty the tables after a test that commits, although triggers guard them against that."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any


def allow() -> None:
    """From now on, and in tests only, a flush of the whole database steps over the triggers."""
    import django.db.models  # noqa: F401  Django's modules refer to each other in a circle; this is the way in
    from django.db.backends.base.operations import BaseDatabaseOperations
    from django.db.backends.postgresql.operations import DatabaseOperations

    flush = BaseDatabaseOperations.execute_sql_flush

    def execute_sql_flush(self: BaseDatabaseOperations, sql_list: Iterable[str]) -> None:
        with without_triggers(self.connection):
            flush(self, sql_list)

    BaseDatabaseOperations.execute_sql_flush = execute_sql_flush  # type: ignore[method-assign]

    truncate = DatabaseOperations.sql_flush

    def sql_flush(self: DatabaseOperations, style: Any, tables: list[str], **options: bool) -> list[str]:
        """A few rows in many tables are sooner deleted than every table gets new files, as a TRUNCATE makes them."""
        if any(options.values()):
            return truncate(self, style, tables, **options)
        return [f"DELETE FROM {self.quote_name(table)}" for table in tables]

    DatabaseOperations.sql_flush = sql_flush  # type: ignore[assignment,method-assign]


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
