"""The ferry takes many writers over in one transaction, and nobody pays for another's mistake."""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from config.sqlite.bundle import Statement
from config.sqlite.ferry import Ferry

INSERT = "INSERT INTO deed (name) VALUES (?)"


class Shore:
    """A database file, the ferry to it, and the gate that holds other processes off."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.ferry = Ferry()
        self.gate = threading.Lock()
        self.crossings = 0
        self._connections: list[sqlite3.Connection] = []
        connection = self.connect()
        connection.execute("PRAGMA journal_mode=WAL")
        connection.execute("CREATE TABLE deed (name TEXT UNIQUE NOT NULL)")

    def connect(self) -> sqlite3.Connection:
        connection = sqlite3.connect(self.path, isolation_level=None, timeout=0.2, check_same_thread=False)
        self._connections.append(connection)
        return connection

    def close(self) -> None:
        for connection in self._connections:
            connection.close()

    def enter(self) -> None:
        self.gate.acquire()
        self.crossings += 1

    def write(self, *statements: Statement) -> bool:
        return self.ferry.cross(statements, self.connect, self.enter, self.gate.release)

    def names(self) -> list[str]:
        return sorted(name for (name,) in self.connect().execute("SELECT name FROM deed"))


@pytest.fixture
def shore(tmp_path: Path) -> Iterator[Shore]:
    made = Shore(tmp_path / "deeds.sqlite3")
    yield made
    made.close()


def together(shore: Shore, *tasks: Callable[[], bool]) -> list[object]:
    """What became of each task, all of which come while the gate is closed."""
    outcomes: list[object] = []
    with ThreadPoolExecutor(len(tasks)) as threads:
        shore.gate.acquire()
        futures = [threads.submit(task) for task in tasks]
        while len(shore.ferry._waiting) < len(tasks):
            threading.Event().wait(0.001)
        shore.gate.release()
        for future in futures:
            error = future.exception()
            outcomes.append(type(error) if error else future.result())
    return outcomes


def test_writers_that_come_together_share_one_transaction(shore: Shore) -> None:
    tasks = [lambda number=number: shore.write((INSERT, [f"deed {number}"])) for number in range(8)]
    assert together(shore, *tasks) == [True] * 8
    assert shore.names() == [f"deed {number}" for number in range(8)]
    assert shore.crossings == 1


def test_what_follows_is_written_only_if_the_first_statement_took_effect(shore: Shore) -> None:
    nothing: Statement = ("UPDATE deed SET name = ? WHERE name = ?", ["b", "missing"])
    assert not shore.write(nothing, (INSERT, ["a"]))
    assert shore.names() == []
    assert shore.write((INSERT, ["b"]), (INSERT, ["c"]))
    assert shore.names() == ["b", "c"]


def test_only_who_did_wrong_is_told_so(shore: Shore) -> None:
    shore.write((INSERT, ["taken"]))
    outcomes = together(
        shore,
        lambda: shore.write((INSERT, ["one"])),
        lambda: shore.write((INSERT, ["half"]), (INSERT, ["taken"])),
        lambda: shore.write((INSERT, ["two"])),
    )
    assert sorted(outcomes, key=str) == [sqlite3.IntegrityError, True, True]
    assert shore.names() == ["one", "taken", "two"]


def test_a_database_that_is_held_is_said_to_all_at_once(shore: Shore) -> None:
    holder = shore.connect()
    holder.execute("BEGIN IMMEDIATE")
    tasks = [lambda number=number: shore.write((INSERT, [f"deed {number}"])) for number in range(4)]
    assert together(shore, *tasks) == [sqlite3.OperationalError] * 4
    holder.execute("ROLLBACK")
    assert shore.write((INSERT, ["later"]))
    assert shore.names() == ["later"]


def test_one_who_cannot_enter_leaves_the_helm_to_the_next(shore: Shore) -> None:
    class Closed(Exception):
        pass

    def closed() -> None:
        raise Closed

    with pytest.raises(Closed):
        shore.ferry.cross([(INSERT, ["never"])], shore.connect, closed, shore.gate.release)
    assert shore.write((INSERT, ["next"]))
    assert shore.names() == ["next"]


def test_a_database_that_failed_is_opened_anew(shore: Shore) -> None:
    shore.write((INSERT, ["before"]))
    boat = shore.ferry._boat
    assert boat is not None
    boat.close()
    with pytest.raises(sqlite3.ProgrammingError):
        shore.write((INSERT, ["lost"]))
    assert shore.write((INSERT, ["after"]))
    assert shore.names() == ["after", "before"]


def test_many_threads_lose_nothing(shore: Shore) -> None:
    def write(thread: int) -> int:
        return sum(shore.write((INSERT, [f"{thread}-{number}"])) for number in range(50))

    with ThreadPoolExecutor(8) as threads:
        assert sum(threads.map(write, range(8))) == 400
    assert len(shore.names()) == 400
    assert not shore.ferry._waiting
    assert not shore.ferry._is_under_way


class Rough(sqlite3.Connection):
    """A connection on which one statement meets trouble, once."""

    fails: tuple[str, BaseException] | None = None

    def execute(self, sql: str, *parameters: Any) -> sqlite3.Cursor:
        if self.fails is not None and sql.startswith(self.fails[0]):
            error, self.fails = self.fails[1], None
            raise error
        return super().execute(sql, *parameters)


@pytest.mark.parametrize(
    ("statement", "error"),
    [
        ("ROLLBACK", sqlite3.OperationalError("disk I/O error")),
        ("ROLLBACK", KeyboardInterrupt()),
        ("COMMIT", KeyboardInterrupt()),
        ("INSERT", MemoryError()),
    ],
    ids=[
        "an undo that fails",
        "an undo that is interrupted",
        "a commit that is interrupted",
        "an interrupted statement",
    ],
)
def test_after_a_trip_that_broke_off_nobody_is_told_of_what_is_not_there(
    shore: Shore, statement: str, error: BaseException
) -> None:
    shore.write((INSERT, ["taken"]))
    rough = sqlite3.connect(shore.path, isolation_level=None, check_same_thread=False, factory=Rough)
    shore._connections.append(rough)
    shore.ferry._boat = rough
    rough.fails = (statement, error)
    names = ["one", "taken", "two"] if statement == "ROLLBACK" else ["one", "two", "three"]
    outcomes = together(shore, *[lambda name=name: shore.write((INSERT, [name])) for name in names])
    assert True not in outcomes
    assert shore.names() == ["taken"]
    assert shore.write((INSERT, ["after"]))  # nothing is held, and a lone one commits
    assert shore.names() == ["after", "taken"]


def test_a_lone_one_does_not_board_a_boat_on_which_a_transaction_was_left_open(shore: Shore) -> None:
    shore.write((INSERT, ["before"]))
    assert shore.ferry._boat is not None
    shore.ferry._boat.execute("BEGIN")
    with pytest.raises(sqlite3.OperationalError, match="left open"):
        shore.write((INSERT, ["lost"]))
    assert shore.write((INSERT, ["after"]))
    assert shore.names() == ["after", "before"]
