"""Stream: rows of any number in bounded memory, as the hashes see them."""

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

from django.db import connection


def stream(sql: str) -> Iterator[tuple[Any, ...]]:
    """Raw rows, a few at a time; on PostgreSQL inside a transaction."""
    with connection.chunked_cursor() as cursor:
        cursor.execute(sql)
        while rows := cursor.fetchmany(2000):
            yield from rows


def moment(at: Any) -> str:
    """A UTC moment as the hash sees it, always with microseconds, from whatever a driver gives."""
    if isinstance(at, datetime):
        return at.astimezone(UTC).replace(tzinfo=None).isoformat(" ", "microseconds")
    text = str(at)
    return f"{text}.000000" if len(text) == 19 else text


def raw(value: Any) -> bytes:
    """The bytes of a hash column; whatever is no bytes is no hash."""
    if type(value) is bytes:
        return value
    return bytes(value) if isinstance(value, (memoryview, bytearray)) else b""
