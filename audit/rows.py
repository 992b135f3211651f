"""Fast inserts for hot paths: one statement for all rows, its SQL and conversions worked out once."""

from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any, NamedTuple

from django.db import DEFAULT_DB_ALIAS, connection, connections, models

# Both databases cap the parameters of one statement (SQLite at 32 766, PostgreSQL at 65 535).
_MAX_PARAMETERS = 30_000

# Values of these fields go to both drivers as they are.
_PLAIN = (
    models.AutoField,
    models.BigAutoField,
    models.IntegerField,
    models.FloatField,
    models.CharField,
    models.TextField,
    models.BooleanField,
    models.BinaryField,
)

Converter = Callable[[Any], Any]


class Rows(NamedTuple):
    """Rows for one table, their values in the order of `columns` (attnames)."""

    model: type[models.Model]
    columns: tuple[str, ...]
    values: Sequence[tuple[Any, ...]]


def insert(model: type[models.Model], columns: tuple[str, ...], rows: Sequence[tuple[Any, ...]]) -> None:
    """Insert rows whose values stand in the order of `columns` (attnames); one with a db_default may be left out."""
    if not rows:
        return
    database = connections[DEFAULT_DB_ALIAS]  # looked up once: the `connection` proxy asks its thread-local each time
    vendor, per_statement = database.vendor, _MAX_PARAMETERS // len(columns)
    for start in range(0, len(rows), per_statement):
        chunk = rows[start : start + per_statement]
        with database.cursor() as cursor:
            cursor.execute(statement(model, columns, len(chunk)), parameters(model, columns, chunk, vendor))


def parameters(
    model: type[models.Model], columns: tuple[str, ...], rows: Sequence[tuple[Any, ...]], vendor: str
) -> list[Any]:
    """All values in a row, in the form that the vendor's driver takes."""
    converters = _converters(model, columns, vendor)
    if not converters:
        return [value for row in rows for value in row]
    parameters: list[Any] = []
    for row in rows:
        values = list(row)
        for index, convert in converters:
            if values[index] is not None:
                values[index] = convert(values[index])
        parameters += values
    return parameters


@lru_cache(maxsize=512)
def statement(model: type[models.Model], columns: tuple[str, ...], count: int) -> str:
    """One INSERT for so many rows."""
    quote = connection.ops.quote_name
    names = ", ".join(quote(field_of(model, column).column or column) for column in columns)
    row = "(" + ", ".join(["%s"] * len(columns)) + ")"
    return f"INSERT INTO {quote(model._meta.db_table)} ({names}) VALUES {', '.join([row] * count)}"


@lru_cache(maxsize=256)
def _converters(model: type[models.Model], columns: tuple[str, ...], vendor: str) -> tuple[tuple[int, Converter], ...]:
    found = []
    for index, column in enumerate(columns):
        field = field_of(model, column)
        while isinstance(field, models.ForeignKey):
            field = field.target_field
        converter = _converter(field, vendor)
        if converter is not None:
            found.append((index, converter))
    return tuple(found)


def _converter(field: "models.Field[Any, Any]", vendor: str) -> Converter | None:
    if isinstance(field, _PLAIN):
        return None
    if isinstance(field, models.DateTimeField):
        return _utc_text if vendor == "sqlite" else None
    if isinstance(field, models.UUIDField):
        return _uuid_hex if vendor == "sqlite" else None
    return lambda value: field.get_db_prep_save(value, connection)


def field_of(model: type[models.Model], attname: str) -> "models.Field[Any, Any]":
    for field in model._meta.concrete_fields:
        if field.attname == attname:
            return field
    raise ValueError(f"{model._meta.label} has no column {attname!r}.")


@lru_cache(maxsize=64)  # the events of one write share their moment
def _utc_text(value: datetime) -> str:
    """The form in which Django keeps a moment in SQLite."""
    return str(value.astimezone(UTC).replace(tzinfo=None))


def _uuid_hex(value: Any) -> str:
    """The form in which Django keeps a UUID in SQLite."""
    return str(value.hex)
