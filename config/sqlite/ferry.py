"""The ferry: writers that come while another one writes cross together, in one transaction; each hears of its own part.

A commit costs more than what most of them write, and while one waits for it the others would queue up behind.
"""

import sqlite3
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress

from config.sqlite import bundle
from config.sqlite.bundle import Statement


class Passenger:
    """Statements of which the later ones are executed only if the first one changes a row."""

    __slots__ = ("error", "is_across", "is_settled", "statements", "took_effect", "turn")

    def __init__(self, statements: Sequence[Statement]) -> None:
        self.statements = statements
        self.took_effect = False
        self.error: sqlite3.Error | None = None
        self.is_settled = False  # whether it is known what became of it
        self.is_across = False
        self.turn = threading.Lock()
        self.turn.acquire()  # released by another thread, when this one is across or has to steer

    @property
    def met_trouble(self) -> bool:
        """Whether the database itself failed; a statement that it refuses is no trouble of its."""
        return self.error is not None and not isinstance(self.error, sqlite3.IntegrityError)

    def board(self, connection: sqlite3.Connection) -> None:
        self.took_effect = bundle.execute(connection, self.statements)

    def settle(self, error: sqlite3.Error | None = None) -> None:
        """What it wrote is committed, or this is why it is not."""
        self.error, self.is_settled = error, True


class Ferry:
    """One for all threads of a process that write to one database; its own connection's cache stays warm."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._waiting: list[Passenger] = []
        self._is_under_way = False
        self._boat: sqlite3.Connection | None = None

    def cross(
        self,
        statements: Sequence[Statement],
        connect: Callable[[], sqlite3.Connection],
        enter: Callable[[], None],
        leave: Callable[[], None],
    ) -> bool:
        """Whether the first statement changed a row; all are committed then. `enter` and `leave` hold others off."""
        passenger = Passenger(statements)
        with self._lock:
            self._waiting.append(passenger)
            steers, self._is_under_way = not self._is_under_way, True
        if not steers:
            passenger.turn.acquire()
        if not passenger.is_across:
            self._steer(passenger, connect, enter, leave)
        if passenger.error is not None:
            raise passenger.error
        return passenger.took_effect

    def _steer(
        self,
        own: Passenger,
        connect: Callable[[], sqlite3.Connection],
        enter: Callable[[], None],
        leave: Callable[[], None],
    ) -> None:
        """Takes everyone over who is waiting by now, then hands the helm to whoever came since."""
        aboard: list[Passenger] = [own]
        try:
            enter()
            try:
                boat = self._boat or connect()
                with self._lock:
                    aboard, self._waiting = self._waiting, []
                self._boat = None  # after trouble, the next one tries a new one
                try:
                    _sail(aboard, boat)
                except BaseException:
                    _sink(boat)
                    raise
                if any(passenger.met_trouble for passenger in aboard):
                    _sink(boat)
                else:
                    self._boat = boat
            finally:
                leave()
        finally:
            with self._lock:
                if own in self._waiting:  # we could not even begin
                    self._waiting.remove(own)
                successor = self._waiting[0] if self._waiting else None
                self._is_under_way = successor is not None
            for passenger in aboard:
                if not passenger.is_settled:
                    passenger.settle(sqlite3.OperationalError("the transaction was interrupted"))
                passenger.is_across = True
                if passenger is not own:
                    passenger.turn.release()
            if successor is not None:
                successor.turn.release()


def _sail(aboard: Sequence[Passenger], connection: sqlite3.Connection) -> None:
    """One transaction for all; if one of them does wrong, one for each, so that only that one is told so."""
    if len(aboard) == 1:
        _sail_alone(aboard[0], connection)
        return
    try:
        connection.execute("BEGIN IMMEDIATE")
    except sqlite3.Error as error:  # the database is held, or gone: it would be so for each of them
        for passenger in aboard:
            passenger.settle(error)
        return
    try:
        for passenger in aboard:
            passenger.board(connection)
        connection.execute("COMMIT")
    except sqlite3.Error:
        _undo(connection)
        for passenger in aboard:
            _sail_alone(passenger, connection)
    else:
        for passenger in aboard:
            passenger.settle()


def _sail_alone(passenger: Passenger, connection: sqlite3.Connection) -> None:
    """What one writes is one statement, and so a transaction of its own, if no other one is open."""
    try:
        if connection.in_transaction:
            raise sqlite3.OperationalError("another transaction was left open")
        passenger.board(connection)
    except sqlite3.Error as error:
        passenger.settle(error)
    else:
        passenger.settle()


def _undo(connection: sqlite3.Connection) -> None:
    if connection.in_transaction:
        connection.execute("ROLLBACK")


def _sink(connection: sqlite3.Connection) -> None:
    """What an interrupted trip has begun is undone, if need be with its connection; it must not hold the database."""
    with suppress(sqlite3.Error):  # also from one that is closed already
        try:
            _undo(connection)
        finally:
            if connection.in_transaction:
                connection.close()
