"""A guarded write outside any transaction, as every call makes it: on PostgreSQL one prepared statement."""

from __future__ import annotations

from collections.abc import Iterator

import psycopg
import pytest
from django.contrib.auth.models import User
from django.db import DatabaseError, DataError, IntegrityError, OperationalError, connection, transaction

from audit import guarded
from audit.models import Event
from tests.audit.test_guarded import RENAME, events, with_a_bad_number

pytestmark = pytest.mark.django_db(transaction=True)

CHANGE = "UPDATE auth_user SET first_name = %s, is_staff = %s, last_login = %s WHERE username = %s AND id > %s"


@pytest.fixture
def ada() -> User:
    return User.objects.create_user("ada")


@pytest.fixture
def unprepared() -> Iterator[None]:
    """As behind a pooler that shares connections between transactions."""
    connection.ensure_connection()
    if connection.vendor == "postgresql":
        connection.connection.prepare_threshold = None
    yield
    connection.close()


def test_values_of_every_kind_arrive_whole(ada: User) -> None:
    rows = events("user.renamed", actor="Größe \U0001f511 \"'\\")
    at = dict(zip(rows.columns, rows.values[0], strict=True))["at"]
    moment = at if connection.vendor == "postgresql" else str(at.replace(tzinfo=None))
    assert guarded.write(CHANGE, ["Ada Ω", True, moment, "ada", 0], rows)
    assert guarded.write(RENAME, ["", "ada"])
    ada.refresh_from_db()
    assert (ada.first_name, ada.is_staff, ada.last_login) == ("", True, at)
    assert guarded.write(CHANGE, ["x", False, None, "ada", 0])
    ada.refresh_from_db()
    assert (ada.is_staff, ada.last_login) == (False, None)
    event = Event.objects.get()
    assert (event.actor, event.at, bytes(event.hash)) == ("Größe \U0001f511 \"'\\", at, rows.values[0][-2])


def test_what_had_no_effect_adds_nothing(ada: User) -> None:
    assert not guarded.write(RENAME, ["Bob", "bob"], events("user.renamed"))
    assert not Event.objects.exists()


def test_what_is_refused_leaves_nothing_and_the_connection_as_it_was(ada: User) -> None:
    assert guarded.write(RENAME, ["Ada", "ada"], events("user.renamed"))
    with pytest.raises(IntegrityError):  # the same places in the chain
        guarded.write(RENAME, ["Eve", "ada"], events("user.renamed"))
    with pytest.raises(DatabaseError):
        guarded.write(RENAME, ["Eve", "ada"], with_a_bad_number(events("user.told")))
    assert User.objects.get(username="ada").first_name == "Ada"
    assert Event.objects.count() == 1


def test_a_text_is_never_cut_where_it_holds_a_null(ada: User) -> None:
    if connection.vendor == "postgresql":
        with pytest.raises(DataError):
            guarded.write(RENAME, ["A\0da", "ada"], events("user.renamed"))
        assert not Event.objects.exists()
    else:
        assert guarded.write(RENAME, ["A\0da", "ada"])
        assert User.objects.get(username="ada").first_name == "A\0da"


def test_a_lost_connection_is_told_as_such_and_the_next_one_works(ada: User) -> None:
    assert guarded.write(RENAME, ["Ada", "ada"])
    if connection.vendor == "postgresql":
        with psycopg.connect(connection.connection.info.dsn, autocommit=True) as other:
            other.execute("SELECT pg_terminate_backend(%s)", [connection.connection.info.backend_pid])
        with pytest.raises(OperationalError):
            guarded.write(RENAME, ["Eve", "ada"], events("user.renamed"))
    connection.close()
    assert guarded.write(RENAME, ["Bea", "ada"])
    assert not Event.objects.exists()


def test_it_goes_on_after_a_rollback_and_after_the_tables_changed(ada: User) -> None:
    assert guarded.write(RENAME, ["Ada", "ada"])
    with pytest.raises(IntegrityError), transaction.atomic():
        User.objects.create_user("ada")
    assert guarded.write(RENAME, ["Bea", "ada"], events("user.renamed"))
    with connection.cursor() as cursor:
        cursor.execute("CREATE TABLE passing (id integer)")
        cursor.execute("DROP TABLE passing")
    assert guarded.write(RENAME, ["Cleo", "ada"])
    assert User.objects.get(username="ada").first_name == "Cleo"
    assert Event.objects.count() == 1


def test_it_needs_no_prepared_statement(ada: User, unprepared: None) -> None:
    assert guarded.write(RENAME, ["Ada", "ada"], events("user.renamed"))
    assert User.objects.get(username="ada").first_name == "Ada"
    assert Event.objects.count() == 1
