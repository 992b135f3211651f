"""Django's SQLite backend with a queue at the writer's door.

SQLite lets one transaction write at a time and makes the others poll with growing sleeps. Here they wait on a
lock instead, threads and processes alike, and are woken in microseconds when it is their turn.
"""

import fcntl
import os
import sqlite3
import threading
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

from django.db import OperationalError
from django.db.backends.sqlite3 import base

from config.sqlite.bundle import Statement
from config.sqlite.ferry import Ferry

PATIENCE = 5.0  # seconds that a thread waits for the writers before it in its own process

_gates: dict[str, "Gate"] = {}
_gates_lock = threading.Lock()


class Gate:
    """One writer at a time over all threads and processes that use one database file."""

    def __init__(self, path: str) -> None:
        self._threads = threading.Lock()
        self._file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        self._pid = os.getpid()
        self.ferry = Ferry()

    def enter(self, patience: float) -> None:
        """Waits its turn, but not for every writer before it to lose its own patience with a database that is held."""
        if not self._threads.acquire(timeout=patience):
            raise OperationalError("database is locked")
        fcntl.flock(self._file, fcntl.LOCK_EX)

    def leave(self) -> None:
        fcntl.flock(self._file, fcntl.LOCK_UN)
        self._threads.release()


def gate_for(name: str) -> "Gate | None":
    """The gate of a database file; in-memory databases need none."""
    if name == ":memory:" or name.startswith("file:"):
        return None
    path = f"{Path(name).resolve()}-gate"
    with _gates_lock:
        gate = _gates.get(path)
        if gate is None or gate._pid != os.getpid():  # a fork shares the file's lock with its parent: open anew
            gate = _gates[path] = Gate(path)
        return gate


class Cursor(base.SQLiteCursorWrapper):
    """Rewrites the placeholders of a statement once, not at each execution."""

    def execute(self, query: str, params: Any = None) -> Any:
        if params is None or isinstance(params, dict):
            return super().execute(query, params)
        return super(base.SQLiteCursorWrapper, self).execute(_with_question_marks(query), params)


@lru_cache(maxsize=512)
def _with_question_marks(query: str) -> str:
    return base.FORMAT_QMARK_REGEX.sub("?", query).replace("%%", "%")


class DatabaseWrapper(base.DatabaseWrapper):
    """Takes the gate before BEGIN IMMEDIATE and leaves it after COMMIT or ROLLBACK."""

    _held: Gate | None = None
    _gate: Gate | None = None

    def create_cursor(self, name: str | None = None) -> Cursor:
        cursor: Cursor = self.connection.cursor(factory=Cursor)
        return cursor

    def write_together(self, statements: Sequence[Statement]) -> bool:
        """Whether the first statement changed a row; if so the others are committed with it. Only outside `atomic`."""
        self.ensure_connection()
        ready = [(_with_question_marks(statement), parameters) for statement, parameters in statements]
        gate = self._current_gate()
        with self.wrap_database_errors:
            if gate is None:  # a database in memory is its connection
                return Ferry().cross(ready, lambda: self.connection, self._enter, self._leave)
            return gate.ferry.cross(ready, self._connected, self._enter, self._leave)

    def _connected(self) -> sqlite3.Connection:
        """One more connection, for whichever thread writes at the moment."""
        made: sqlite3.Connection = self.get_new_connection(self.get_connection_params())
        made.isolation_level = None  # transactions begin where we say so
        return made

    def _start_transaction_under_autocommit(self) -> None:
        self._enter()
        try:
            super()._start_transaction_under_autocommit()  # type: ignore[misc]  # the stubs leave it out
        except BaseException:
            self._leave()
            raise

    def _current_gate(self) -> Gate | None:
        gate = self._gate
        if gate is None or gate._pid != os.getpid():
            gate = self._gate = gate_for(str(self.settings_dict["NAME"]))
        return gate

    def _enter(self) -> None:
        if self._held is not None:
            return
        gate = self._current_gate()
        if gate is not None:
            gate.enter(PATIENCE)
            self._held = gate

    def _leave(self) -> None:
        gate, self._held = self._held, None
        if gate is not None:
            gate.leave()

    def _commit(self) -> Any:
        try:
            return super()._commit()  # type: ignore[misc]
        finally:
            if not self._in_transaction():
                self._leave()

    def _rollback(self) -> Any:
        try:
            return super()._rollback()  # type: ignore[misc]
        finally:
            self._leave()

    def _close(self) -> Any:
        try:
            return super()._close()  # type: ignore[misc]
        finally:
            self._leave()

    def _in_transaction(self) -> bool:
        return self.connection is not None and self.connection.in_transaction
