"""A guarded write: rows that are added only if a first statement took effect, all of it committed together.

PostgreSQL gets it as one statement, prepared once per connection: one round trip where a transaction would take five.
SQLite, where a round trip costs nothing but a commit does, gets plain statements, which `config.sqlite` runs as one;
writers may share a commit.
"""

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

from django.db import DEFAULT_DB_ALIAS, connection, connections, models, transaction
from django.db.backends.base.base import BaseDatabaseWrapper

from audit import prepared, rows, warm
from audit.glance import numbered
from audit.rows import Rows


def write(guard: str, parameters: Sequence[Any], *additions: Rows) -> bool:
    """Whether `guard`, an INSERT or an UPDATE, changed a row; if so the additions are there too, if not nothing is."""
    database = connections[DEFAULT_DB_ALIAS]
    if database.in_atomic_block:
        with transaction.atomic():  # a savepoint: a failure here must not spoil what its owner wrote
            if database.vendor == "postgresql":
                return _in_one_statement(database, guard, parameters, additions)
            return _one_by_one(database, _plain(guard, parameters, additions))
    if database.vendor == "postgresql":
        return _in_one_statement(database, guard, parameters, additions)
    plain = _plain(guard, parameters, additions)
    return bool(database.write_together(plain))  # type: ignore[attr-defined]  # our own backend's


def _plain(guard: str, parameters: Sequence[Any], additions: tuple[Rows, ...]) -> list[tuple[str, Sequence[Any]]]:
    """One statement after the other, for SQLite."""
    inserts = [
        (rows.statement(model, columns, len(values)), rows.parameters(model, columns, values, "sqlite"))
        for model, columns, values in additions
    ]
    return [(guard, parameters), *inserts]


def _one_by_one(database: BaseDatabaseWrapper, statements: list[tuple[str, Sequence[Any]]]) -> bool:
    with database.cursor() as cursor:
        for statement, parameters in statements:
            cursor.execute(statement, parameters)
            if not cursor.rowcount:  # only the guard can have changed nothing
                return False
    return True


def _in_one_statement(
    database: BaseDatabaseWrapper, guard: str, parameters: Sequence[Any], additions: tuple[Rows, ...]
) -> bool:
    shape = tuple((model, columns, len(values)) for model, columns, values in additions)
    statement, everything = _joined(guard, shape), list(parameters)
    for addition in additions:
        everything += rows.parameters(*addition, database.vendor)
    with database.wrap_database_errors, warm.taken(database) as connection:
        if not database.in_atomic_block and connection.prepare_threshold is not None:
            return prepared.count(connection, statement, everything) > 0
        from psycopg import RawCursor

        with RawCursor(connection) as cursor:
            cursor.execute(statement, everything)
            found = cursor.fetchone()
            return bool(found and found[0])


@lru_cache(maxsize=256)
def _joined(guard: str, shape: tuple[tuple[type[models.Model], tuple[str, ...], int], ...]) -> str:
    """One statement whose later parts each take place once for the row that the first part changed."""
    parts = [f"guard AS ({guard} RETURNING 1)"]
    for number, (model, columns, count) in enumerate(shape):
        fields = [rows.field_of(model, column) for column in columns]
        names = ", ".join(connection.ops.quote_name(field.column or field.name) for field in fields)
        row = "(" + ", ".join(f"%s::{_type_of(field)}" for field in fields) + ")"
        parts.append(
            f"added_{number} AS (INSERT INTO {connection.ops.quote_name(model._meta.db_table)} ({names})"
            f" SELECT new.* FROM guard, (VALUES {', '.join([row] * count)}) AS new)"
        )
    return numbered(f"WITH {', '.join(parts)} SELECT count(*) FROM guard")


def _type_of(field: "models.Field[Any, Any]") -> str:
    """Without the length: a cast to varchar(40) would cut a longer text where an insert refuses it."""
    return str(field.cast_db_type(connection)).partition("(")[0]
