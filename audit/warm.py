"""Warm: a few connections to PostgreSQL for single statements, the one that was used last first.

A web server hands requests to its threads in turn, and each thread has a connection of its own. With sixty-four of them
a call would meet a process of PostgreSQL that has slept for sixty-three calls and has nothing at hand, so whatever
needs no transaction of its thread is asked here, in a process that wants it.
"""

import os
import threading
from types import TracebackType
from typing import TYPE_CHECKING, Any

from django.db.backends.base.base import BaseDatabaseWrapper

from audit import prepared

if TYPE_CHECKING:
    from psycopg import Connection

MOST = 8  # connections; who finds none free uses its thread's own

_lock = threading.Lock()
_free: list["Connection[Any]"] = []
_of_parent: list["Connection[Any]"] = []  # kept, for to close one would end it for the parent too
_made = 0
_is_wanted = False


def want() -> None:
    """For a process of many threads, of which few talk to the database at the same time."""
    global _is_wanted
    _is_wanted = True


def serves(database: BaseDatabaseWrapper) -> bool:
    """Whether `taken` need not look at the thread's own connection."""
    return (
        _is_wanted
        and database.vendor == "postgresql"
        and not database.in_atomic_block
        and database.settings_dict["OPTIONS"].get("prepare_threshold") is not None  # else a pooler mixes them up
    )


def look_after(database: BaseDatabaseWrapper) -> None:
    """Has the thread make its own connection anew if the server has ended it; what it would be asked first is not."""
    if serves(database) and database.connection is not None and not prepared.stands(database.connection):
        database.close()


class taken:
    """Within it a connection that stands and is nobody else's; it is the thread's own where that must be, or can be."""

    __slots__ = ("_connection", "_database")

    def __init__(self, database: BaseDatabaseWrapper) -> None:
        self._database = database
        self._connection: Connection[Any] | None = None

    def __enter__(self) -> "Connection[Any]":
        if serves(self._database):
            self._connection = _take(self._database)
        if self._connection is not None:
            return self._connection
        self._database.ensure_connection()
        own: Connection[Any] = self._database.connection
        return own

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None) -> None:
        connection = self._connection
        if connection is None:
            return
        from psycopg.pq import TransactionStatus

        if connection.info.transaction_status == TransactionStatus.IDLE:
            _free.append(connection)
        else:  # it broke, or somebody was interrupted in the middle of an answer
            _drop(connection)


def _take(database: BaseDatabaseWrapper) -> "Connection[Any] | None":
    global _made
    while True:
        try:
            connection = _free.pop()
        except IndexError:
            break
        if prepared.stands(connection):
            return connection
        _drop(connection)
    with _lock:
        if _made >= MOST:
            return None
        _made += 1
    try:
        return _connected(database)
    except BaseException:
        with _lock:
            _made -= 1
        raise


def _connected(database: BaseDatabaseWrapper) -> "Connection[Any]":
    connection: Connection[Any] = database.get_new_connection(database.get_connection_params())
    connection.autocommit = True
    connection.execute("SELECT set_config('TimeZone', %s, false)", [database.timezone_name])
    return connection


def _drop(connection: "Connection[Any]") -> None:
    global _made
    with _lock:
        _made -= 1
    connection.close()


def _begin_in_child() -> None:
    global _lock, _made
    _lock = threading.Lock()
    _of_parent.extend(_free)
    _free.clear()
    _made = 0


os.register_at_fork(after_in_child=_begin_in_child)
