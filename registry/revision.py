"""The registry's revision: one number that changes whenever something that resolution or policy reads does.

Caches keep their answers under this number. It is bumped by the database itself, in the transaction of the change, so
no writer can forget it. A number never comes back, not even after a rollback: PostgreSQL draws it from a sequence,
SQLite draws 63 random bits.
"""

import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from django.db import DEFAULT_DB_ALIAS, InterfaceError, OperationalError, connection, connections, migrations
from django.db.backends.base.schema import BaseDatabaseSchemaEditor
from django.db.migrations.operations.base import Operation

from audit import prepared, warm
from audit.glance import glance
from registry.triggers import EVENTS, Reaction, Trigger, differs, install

_SQLITE_BUMP = "UPDATE registry_revision SET number = random() & 9223372036854775807;"
_POSTGRESQL_BUMP = "UPDATE registry_revision SET number = nextval('registry_revision_number');"
_READ = "SELECT number FROM registry_revision"
IS_STILL = f"({_READ}) = %s"  # for the WHERE of a statement that must not act on a judgement that is out of date


FRESH = 1.0  # seconds after which a number that was read is no longer worth a guess


class Unsure(Exception):
    """What follows may not rest on a guess: it has to be gone over again with the number of this moment."""


class _Pin(threading.local):
    """What this thread judges by.

    What it saw is for no other thread: it may have seen it in a transaction that is still open, and the other one would
    keep what it reads of the state before under the number of the state after.
    """

    depth = 0
    number: int | None = None
    is_guess = False
    seen: int | None = None
    seen_at = 0.0


_pin = _Pin()


class pinned:
    """Within it this thread reads the revision once: all of one call is judged by the same state of the registry."""

    def __enter__(self) -> None:
        if _pin.depth == 0:
            _pin.number = None
        _pin.depth += 1

    def __exit__(self, *_: object) -> None:
        _pin.depth -= 1


@contextmanager
def guessed() -> Iterator[bool]:
    """As `pinned`, by the number that this thread saw last, if that was just now; says whether it is so.

    It saves a call a look at the database. Whoever writes within it either names the number in the statement
    (`IS_STILL`) and says so afterwards with `confirm`, or asks to be `certain` before.
    """
    is_fresh = time.monotonic() - _pin.seen_at < FRESH
    if not is_fresh or _pin.depth or not _stands():
        yield False
        return
    with pinned():
        _pin.number, _pin.is_guess = _pin.seen, True
        try:
            yield True
        finally:
            _pin.is_guess = False


def _stands() -> bool:
    """Whether a statement has a good chance to be heard; a file is always there."""
    database = connections[DEFAULT_DB_ALIAS]
    return database.vendor == "sqlite" or warm.serves(database) or prepared.stands(database.connection)


def is_guess() -> bool:
    return _pin.is_guess


def confirm() -> None:
    """A statement took effect under the condition that the number still holds."""
    if _pin.is_guess:
        _pin.is_guess, _pin.seen_at = False, time.monotonic()


def certain() -> None:
    """Raises Unsure unless the number was read, or confirmed."""
    if _pin.is_guess:
        raise Unsure


def renew() -> None:
    """Within `pinned`: what follows is judged by the state of this moment, for it moved or time has passed."""
    _pin.number = None


def current() -> int:
    """The number of this moment, as this transaction sees it; inside `pinned`, that of its first reading."""
    if _pin.depth == 0:
        return _read()
    if _pin.number is None:
        _pin.number = _read()
    return _pin.number


def hold() -> bool:
    """Whether `current` is still true; if so, it stays true until this transaction ends."""
    judged_by = current()
    with connection.cursor() as cursor:
        cursor.execute(f"{_READ} FOR SHARE" if connection.vendor == "postgresql" else _READ)
        return bool(cursor.fetchone() == (judged_by,))


def _read() -> int:
    """What every request reads first, so here a connection that a restarted server has forgotten is made anew."""
    warm.look_after(connections[DEFAULT_DB_ALIAS])
    try:
        number = _number()
    except (OperationalError, InterfaceError):
        if connection.in_atomic_block:
            raise
        connection.close()
        number = _number()
    _pin.seen, _pin.seen_at = number, time.monotonic()
    return number


def _number() -> int:
    row = glance(_READ)
    if row is None:
        raise LookupError("The table registry_revision has lost its row.")
    return int(row[0])


def watch(table: str, columns: Sequence[str] | None = None, *, is_born_quietly: bool = False) -> Operation:
    """A migration operation: from now on a change of this table, or only of these columns, is a new revision.

    A row that `is_born_quietly` says nothing yet that anyone could have cached.
    """
    triggers = _watching(table, columns)
    return install(*(each for each in triggers if not (is_born_quietly and each.event == "INSERT")))


def create_table() -> migrations.RunPython:
    """A migration operation: the table with its one row; not a model, because nobody but triggers writes it."""

    def forwards(apps: object, schema_editor: BaseDatabaseSchemaEditor) -> None:
        if schema_editor.connection.vendor == "postgresql":
            schema_editor.execute("CREATE SEQUENCE registry_revision_number", None)
        schema_editor.execute(
            "CREATE TABLE registry_revision (id integer PRIMARY KEY CHECK (id = 1), number bigint NOT NULL)", None
        )
        schema_editor.execute("INSERT INTO registry_revision (id, number) VALUES (1, 0)", None)

    def backwards(apps: object, schema_editor: BaseDatabaseSchemaEditor) -> None:
        schema_editor.execute("DROP TABLE registry_revision", None)
        if schema_editor.connection.vendor == "postgresql":
            schema_editor.execute("DROP SEQUENCE registry_revision_number", None)

    return migrations.RunPython(forwards, backwards)


def _watching(table: str, columns: Sequence[str] | None) -> list[Trigger]:
    return [
        Reaction(
            name=f"{table}_{event.lower()}_is_a_new_revision",
            table=table,
            event=event,
            when=differs(*columns) if columns and event == "UPDATE" else "",
            sqlite_body=_SQLITE_BUMP,
            postgresql_body=_POSTGRESQL_BUMP,
            is_per_statement=not (columns and event == "UPDATE"),
        )
        for event in (*EVENTS, "TRUNCATE")
    ]
