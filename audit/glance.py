"""A glance: one row, read straight from the driver, for the few questions that every call asks."""

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

from django.db import DEFAULT_DB_ALIAS, connections

from audit import warm


def glance(statement: str, parameters: Sequence[Any] = ()) -> tuple[Any, ...] | None:
    """The row that the statement finds first, as the driver gives it; its placeholders are %s."""
    database = connections[DEFAULT_DB_ALIAS]
    if database.vendor == "sqlite":
        database.ensure_connection()
        with database.wrap_database_errors:
            found: tuple[Any, ...] | None = database.connection.execute(_marked(statement), parameters).fetchone()
            return found
    with database.wrap_database_errors, warm.taken(database) as connection:
        from psycopg import RawCursor

        with RawCursor(connection) as cursor:
            cursor.execute(numbered(statement), parameters)
            return cursor.fetchone()


@lru_cache(maxsize=256)
def numbered(statement: str) -> str:
    """With $1, $2, … in place of %s, so that PostgreSQL's driver has nothing to rewrite at each execution."""
    texts = statement.replace("%%", "%").split("%s")
    return "".join(f"{text}${number}" for number, text in enumerate(texts[:-1], 1)) + texts[-1]


@lru_cache(maxsize=256)
def _marked(statement: str) -> str:
    return statement.replace("%%", "%").replace("%s", "?")
