"""Prepared: a statement that every call makes, handed to PostgreSQL's own client library in one step.

The driver's cursor works out types, plans and waits anew at each execution, which costs as much as the answer takes.
"""

import itertools
import select
from collections.abc import Callable, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any, NamedTuple
from uuid import UUID

if TYPE_CHECKING:
    from psycopg import Connection
    from psycopg.pq.abc import PGresult

_KEPT = "placet_prepared"  # on the connection: what was prepared there, by text and types
_TEXT, _BINARY = 0, 1
_numbers = itertools.count()


class Prepared(NamedTuple):
    """The name of a statement on one connection, and how its parameters are written."""

    name: bytes
    forms: list[int]
    writers: list[Callable[[Any], bytes | None]]
    texts: list[int]  # which of them are texts


def count(connection: "Connection[Any]", statement: str, parameters: Sequence[Any]) -> int:
    """The number that the statement, written with $1, $2, …, answers; not within a transaction."""
    from psycopg.errors import InvalidSqlStatementName

    known: dict[tuple[str, tuple[type, ...]], Prepared] | None = getattr(connection, _KEPT, None)
    if known is None:
        known = {}
        setattr(connection, _KEPT, known)
    key = (statement, tuple(map(type, parameters)))
    try:
        return _answer(connection, known.get(key) or known.setdefault(key, _prepare(connection, *key)), parameters)
    except InvalidSqlStatementName:  # the driver forgets all that was prepared after a rollback, ours included
        known.clear()
        return _answer(connection, known.setdefault(key, _prepare(connection, *key)), parameters)


def stands(connection: "Connection[Any] | None") -> bool:
    """Whether nobody has ended the connection while it was idle: a server that does so says it, or hangs up."""
    if connection is None or connection.closed:
        return False
    ear = select.poll()
    ear.register(connection.fileno(), select.POLLIN)
    return not ear.poll(0)


def _answer(connection: "Connection[Any]", prepared: Prepared, parameters: Sequence[Any]) -> int:
    if "\0" in "".join([parameters[index] for index in prepared.texts]):  # the text would end there
        from psycopg import DataError

        raise DataError("PostgreSQL text fields cannot contain NUL (0x00) bytes")
    values: list[Any] = [write(parameter) for write, parameter in zip(prepared.writers, parameters, strict=True)]
    answer = connection.pgconn.exec_prepared(prepared.name, values, prepared.forms)
    return int(_checked(connection, answer).get_value(0, 0) or 0)


def _prepare(connection: "Connection[Any]", statement: str, types: tuple[type, ...]) -> Prepared:
    written = [next(_WRITTEN[base] for base in each.__mro__ if base in _WRITTEN) for each in types]
    oids, forms, writers = zip(*written, strict=True)
    name = b"placet_%d" % next(_numbers)
    _checked(connection, connection.pgconn.prepare(name, statement.encode(), list(oids)))
    texts = [index for index, each in enumerate(types) if issubclass(each, str)]
    return Prepared(name, list(forms), list(writers), texts)


# By type: PostgreSQL's number for it, whether it goes as text, and how; 0 is whatever its column makes of it.
_WRITTEN: dict[type, tuple[int, int, Callable[[Any], bytes | None]]] = {
    type(None): (0, _TEXT, lambda _: None),
    str: (0, _TEXT, str.encode),
    int: (20, _TEXT, lambda value: b"%d" % value),
    bool: (16, _TEXT, lambda value: b"t" if value else b"f"),
    float: (701, _TEXT, lambda value: repr(value).encode()),
    datetime: (1184, _TEXT, lambda value: value.isoformat().encode()),
    UUID: (2950, _BINARY, lambda value: value.bytes),
    bytes: (17, _BINARY, bytes),
    memoryview: (17, _BINARY, bytes),
}


def _checked(connection: "Connection[Any]", result: "PGresult") -> "PGresult":
    from psycopg import OperationalError, errors, pq

    if result.status in (pq.ExecStatus.TUPLES_OK, pq.ExecStatus.COMMAND_OK):
        return result
    if connection.pgconn.status != pq.ConnStatus.OK:
        raise OperationalError(connection.pgconn.get_error_message())
    raise errors.error_from_result(result)
