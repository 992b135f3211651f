"""A bundle is one statement to SQLite: all of it takes place, or nothing does."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from config.sqlite import bundle

INSERT = "INSERT INTO deed (name) VALUES (?)"
UNLESS_KNOWN = "INSERT INTO deed (name) SELECT ? WHERE ? = 1 ON CONFLICT (name) DO NOTHING"
RENAME = "UPDATE deed SET name = ? WHERE name = ?"
NOTE = "INSERT INTO note (deed, text) VALUES (?, ?), (?, ?)"


@pytest.fixture
def connection(tmp_path: Path) -> Iterator[sqlite3.Connection]:
    with closing(sqlite3.connect(tmp_path / "deeds.sqlite3", isolation_level=None)) as made:
        made.execute("CREATE TABLE deed (name TEXT UNIQUE NOT NULL)")
        made.execute("CREATE TABLE note (deed TEXT NOT NULL, text NOT NULL CHECK (text <> 'forbidden'))")
        made.execute("CREATE TABLE thing (a, b, c, d, e)")
        yield made


def deeds(connection: sqlite3.Connection) -> list[str]:
    return [name for (name,) in connection.execute("SELECT name FROM deed ORDER BY name")]


def notes(connection: sqlite3.Connection) -> list[tuple[str, str]]:
    return connection.execute("SELECT deed, text FROM note ORDER BY deed, text").fetchall()


def test_later_statements_follow_a_first_one_that_changed_a_row(connection: sqlite3.Connection) -> None:
    for name in ("a", "b"):
        assert bundle.execute(connection, [(INSERT, [name]), (NOTE, [name, "1", name, "2"])])
    assert deeds(connection) == ["a", "b"]
    assert notes(connection) == [("a", "1"), ("a", "2"), ("b", "1"), ("b", "2")]


@pytest.mark.parametrize(
    ("first", "parameters"),
    [(UNLESS_KNOWN, ["known", 1]), (UNLESS_KNOWN, ["new", 2]), (RENAME, ["new", "missing"])],
    ids=["conflict", "condition", "nothing to update"],
)
def test_nothing_follows_a_first_statement_that_changed_nothing(
    connection: sqlite3.Connection, first: str, parameters: list[object]
) -> None:
    connection.execute(INSERT, ["known"])
    assert not bundle.execute(connection, [(first, parameters), (NOTE, ["x", "1", "x", "2"]), (INSERT, ["y"])])
    assert (deeds(connection), notes(connection)) == (["known"], [])


@pytest.mark.parametrize("is_within", [False, True], ids=["alone", "within a transaction"])
def test_one_statement_that_is_refused_takes_back_those_before_it(
    connection: sqlite3.Connection, is_within: bool
) -> None:
    if is_within:
        connection.execute("BEGIN IMMEDIATE")
        connection.execute(INSERT, ["before"])
    with pytest.raises(sqlite3.IntegrityError, match="CHECK constraint"):
        bundle.execute(connection, [(INSERT, ["a"]), (NOTE, ["a", "fine", "a", "forbidden"])])
    assert connection.in_transaction is is_within
    assert (deeds(connection), notes(connection)) == (["before"] if is_within else [], [])


def test_each_value_arrives_as_it_was_given(connection: sqlite3.Connection) -> None:
    given = (None, 2**62, 1.0, "1", b"\0\xff")
    thing = "INSERT INTO thing (a, b, c, d, e) VALUES (?, ?, ?, ?, ?)"
    assert bundle.execute(connection, [(INSERT, ["?"]), (thing, given)])
    (found,) = connection.execute("SELECT a, b, c, d, e FROM thing").fetchall()
    assert found == given
    assert list(map(type, found)) == list(map(type, given))


def test_what_a_connection_knows_survives_the_transaction_that_taught_it_and_failed(
    connection: sqlite3.Connection,
) -> None:
    statements: list[bundle.Statement] = [(INSERT, ["a"]), (NOTE, ["a", "1", "a", "2"])]
    connection.execute("BEGIN")
    bundle.execute(connection, statements)
    connection.execute("ROLLBACK")
    assert bundle.execute(connection, statements)
    assert deeds(connection) == ["a"]


def test_another_missing_table_is_told_as_it_is(connection: sqlite3.Connection) -> None:
    with pytest.raises(sqlite3.OperationalError, match=r"no such table: (main\.)?nowhere"):
        bundle.execute(connection, [(INSERT, ["a"]), ("INSERT INTO nowhere (a) VALUES (?)", [1])])
    assert deeds(connection) == []


def test_it_is_one_statement_to_python(connection: sqlite3.Connection) -> None:
    statements: list[bundle.Statement] = [(INSERT, ["a"]), (NOTE, ["a", "1", "a", "2"])]
    bundle.execute(connection, statements)
    told: list[str] = []
    connection.set_trace_callback(told.append)
    bundle.execute(connection, [(INSERT, ["b"]), statements[1]])
    assert len(set(told)) == 1  # told once more for each statement of its trigger


def test_a_bundle_of_which_only_the_view_was_made_is_completed(connection: sqlite3.Connection) -> None:
    statements: list[bundle.Statement] = [(INSERT, ["a"]), (NOTE, ["a", "1", "a", "2"])]
    connection.execute(bundle._bundle(tuple(text for text, _ in statements)).view)
    assert bundle.execute(connection, statements)
    assert (deeds(connection), len(notes(connection))) == (["a"], 2)
