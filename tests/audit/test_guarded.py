"""A guarded write takes place whole or not at all, on either database."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from django.contrib.auth.models import User
from django.db import DatabaseError, transaction

from audit import guarded, trail
from audit.models import Event
from audit.rows import Rows
from audit.trail import Entry

pytestmark = pytest.mark.django_db

RENAME = "UPDATE auth_user SET first_name = %s WHERE username = %s"


@pytest.fixture
def ada() -> User:
    return User.objects.create_user("ada")


def events(*names: str, actor: str = "shell") -> Rows:
    chain = trail.new_chain("user", "ada")
    return trail.linked(chain, *(Entry(event=name, actor=actor) for name in names))[1]


def with_a_bad_number(rows: Rows) -> Rows:
    """Events whose place in the chain is negative, which no database takes."""
    return rows._replace(values=[(*row[:2], -1, *row[3:]) for row in rows.values])


def test_what_took_effect_brings_its_rows_along_in_order(ada: User) -> None:
    assert guarded.write(RENAME, ["Ada", "ada"], events("user.renamed", "user.told"))
    assert User.objects.get(username="ada").first_name == "Ada"
    assert list(Event.objects.order_by("id").values_list("event", "seq")) == [("user.renamed", 1), ("user.told", 2)]


def test_what_had_no_effect_adds_nothing(ada: User) -> None:
    assert not guarded.write(RENAME, ["Bob", "bob"], events("user.renamed"))
    assert not Event.objects.exists()


def test_rows_that_the_table_refuses_undo_the_effect(ada: User) -> None:
    with pytest.raises(DatabaseError):
        guarded.write(RENAME, ["Ada", "ada"], with_a_bad_number(events("user.renamed")))
    assert User.objects.get(username="ada").first_name == ""


def test_a_text_that_is_too_long_is_never_cut(ada: User) -> None:
    long = "a" * 300
    try:
        with transaction.atomic():
            guarded.write(RENAME, ["Ada", "ada"], events("user.renamed", actor=long))
    except DatabaseError:  # PostgreSQL keeps to the length and refuses
        assert not Event.objects.exists()
    else:  # SQLite knows no lengths
        assert Event.objects.get().actor == long


def test_inside_a_transaction_a_failure_spoils_nothing_else(ada: User) -> None:
    broken = with_a_bad_number(events("user.renamed"))
    with transaction.atomic():
        User.objects.filter(pk=ada.pk).update(last_name="Lovelace")
        with pytest.raises(DatabaseError):
            guarded.write(RENAME, ["Ada", "ada"], broken)
        assert User.objects.get(pk=ada.pk).last_name == "Lovelace"


def test_moments_and_empty_values_arrive_as_they_are(ada: User) -> None:
    rows = events("user.renamed")
    assert guarded.write(RENAME, ["Ada", "ada"], rows)
    at = dict(zip(rows.columns, rows.values[0], strict=True))["at"]
    assert Event.objects.get().at == at
    assert at <= datetime.now(UTC)
