"""A database that many threads can use at once: the in-memory SQLite of tests knows one connection only."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def for_threads(folder: Path) -> Iterator[None]:
    """While inside, SQLite is a file as in the product, with the tables of the tests; PostgreSQL stays as it is."""
    from django.db import connection

    if connection.vendor == "postgresql":
        yield
        return
    connection.ensure_connection()
    memory, name, path = connection.connection, connection.settings_dict["NAME"], folder / "races.sqlite3"
    with sqlite3.connect(path) as file:
        memory.backup(file)
    file.close()
    connection.connection, connection.settings_dict["NAME"] = None, str(path)
    try:
        yield
    finally:
        connection.close()
        connection.connection, connection.settings_dict["NAME"] = memory, name
