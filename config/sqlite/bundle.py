"""A bundle: statements that SQLite runs as one, the later ones only if the first one changed a row.

For each statement of its own Python lets go of its lock five times, and under load another thread takes it each time.
So the statements become a trigger on a view of this connection, and what is executed is one insert into that view.
"""

import hashlib
import sqlite3
from collections.abc import Sequence
from functools import lru_cache
from itertools import count
from typing import Any, NamedTuple

Statement = tuple[str, Sequence[Any]]  # with a question mark for each parameter, and none elsewhere


class Bundle(NamedTuple):
    """What is executed with all parameters in a row, and what a connection has to know before."""

    name: str
    insert: str
    view: str
    trigger: str


def execute(connection: sqlite3.Connection, statements: Sequence[Statement]) -> bool:
    """Whether the first statement changed a row; if so the others have been executed too.

    All of them together have at most 2,000 parameters, for so many columns a view may have.
    """
    before = connection.total_changes
    if len(statements) == 1:
        connection.execute(*statements[0])
    else:
        _execute_together(connection, statements)
    return connection.total_changes != before


def _execute_together(connection: sqlite3.Connection, statements: Sequence[Statement]) -> None:
    bundle = _bundle(tuple(text for text, _ in statements))
    everything = [value for _, parameters in statements for value in parameters]
    try:
        connection.execute(bundle.insert, everything)
    except sqlite3.OperationalError as error:
        if bundle.name not in str(error):
            raise
        connection.execute(bundle.view)
        connection.execute(bundle.trigger)
        connection.execute(bundle.insert, everything)


@lru_cache(maxsize=256)
def _bundle(texts: tuple[str, ...]) -> Bundle:
    name = f"placet_bundle_{hashlib.sha256(chr(0).join(texts).encode()).hexdigest()[:24]}"
    numbers = count(1)
    first, *others = (_with_columns(text, numbers) for text in texts)
    width = next(numbers)
    columns = ", ".join(f"p{number}" for number in range(1, width))
    return Bundle(
        name=name,
        insert=f"INSERT INTO {name} VALUES ({', '.join('?' * (width - 1))})",
        # A view's columns of no type leave each value as it was given.
        view=f"CREATE TEMP VIEW IF NOT EXISTS {name} ({columns}) AS SELECT {', '.join(['NULL'] * (width - 1))}",
        trigger=f"CREATE TEMP TRIGGER IF NOT EXISTS {name}_write INSTEAD OF INSERT ON {name} BEGIN {first};"
        f" SELECT RAISE(IGNORE) WHERE changes() = 0; {'; '.join(others)}; END",
    )


def _with_columns(text: str, numbers: "count[int]") -> str:
    """The statement as part of a trigger, where a parameter is a column of the row that fired it."""
    head, *tail = text.split("?")
    return head + "".join(f"NEW.p{next(numbers)}{part}" for part in tail)
