"""Warm connections: what was used last is used first, and whoever broke one leaves nothing behind for the next."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack

import psycopg
import pytest
from django.contrib.auth.models import User
from django.db import OperationalError, connection, connections, transaction

from audit import guarded, warm
from audit.glance import glance
from audit.models import Event
from registry import revision
from tests.audit.test_guarded import RENAME, events
from tests.audit.threads import in_threads

pytestmark = pytest.mark.django_db(transaction=True)
PROCESS = "SELECT pg_backend_pid()"


@pytest.fixture(autouse=True)
def _wanted(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(warm, "_free", [])
    monkeypatch.setattr(warm, "_made", 0)
    monkeypatch.setattr(warm, "_is_wanted", True)
    connection.ensure_connection()
    yield
    for each in warm._free:
        each.close()


def is_embedded() -> bool:
    """SQLite has a warm connection of its own, that of the ferry."""
    if connection.vendor == "sqlite":
        assert not warm.serves(connections["default"])
    return connection.vendor == "sqlite"


def process() -> int:
    row = glance(PROCESS)
    assert row is not None
    return int(row[0])


def own() -> int:
    return int(connection.connection.info.backend_pid)


def end(pid: int) -> None:
    with psycopg.connect(connection.connection.info.dsn, autocommit=True) as other:
        other.execute("SELECT pg_terminate_backend(%s, 5000)", [pid])


def test_all_threads_share_the_one_that_was_used_last() -> None:
    if is_embedded():
        return
    first, others = process(), set[int]()
    for _ in range(3):  # one after the other
        in_threads(1, lambda _: others.add(process()))
    assert others == {first}
    assert first != own()


def test_those_who_ask_at_once_have_one_each_and_the_last_have_their_own() -> None:
    if is_embedded():
        return
    with ExitStack() as held:
        taken = [held.enter_context(warm.taken(connections["default"])) for _ in range(warm.MOST + 1)]
        assert len({each.info.backend_pid for each in taken}) == warm.MOST + 1
        assert taken[-1] is connection.connection
        assert all(each.autocommit for each in taken[:-1])
    assert len(warm._free) == warm.MOST
    assert process() == taken[0].info.backend_pid  # given back last


def test_a_transaction_asks_on_its_own_connection_and_sees_what_it_wrote() -> None:
    if is_embedded():
        return
    with transaction.atomic():
        User.objects.create_user("ada")
        assert process() == own()
        assert guarded.write(RENAME, ["Ada", "ada"], events("user.renamed"))
    assert guarded.write(RENAME, ["Bea", "ada"])
    assert (User.objects.get().first_name, Event.objects.count()) == ("Bea", 1)


def test_behind_a_pooler_each_thread_keeps_to_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    if is_embedded():
        return
    monkeypatch.setitem(connections["default"].settings_dict["OPTIONS"], "prepare_threshold", None)
    assert process() == own()


def test_one_that_was_ended_while_idle_is_replaced_and_nobody_is_told() -> None:
    if is_embedded():
        return
    User.objects.create_user("ada")
    gone = process()
    end(gone)
    assert guarded.write(RENAME, ["Ada", "ada"], events("user.renamed"))
    assert process() not in (gone, own())
    assert (len(warm._free), warm._made) == (1, 1)


def test_one_that_breaks_in_use_is_told_and_not_used_again() -> None:
    if is_embedded():
        return
    with pytest.raises(OperationalError):
        glance("SELECT pg_terminate_backend(pg_backend_pid(), 5000)")
    assert (warm._free, warm._made) == ([], 0)
    assert process() != own()


def test_after_a_restart_the_threads_own_connection_is_made_anew_too() -> None:
    if is_embedded():
        return
    process()
    end(own())
    revision.current()  # what every request reads first, on a warm one
    assert User.objects.count() == 0


def test_a_refused_statement_leaves_it_as_it_was() -> None:
    if is_embedded():
        return
    used = process()
    with pytest.raises(Exception, match="nowhere"):
        glance("SELECT 1 FROM nowhere")
    assert process() == used


def test_if_none_can_be_made_the_next_try_may(monkeypatch: pytest.MonkeyPatch) -> None:
    if is_embedded():
        return

    def refuse(*_: object) -> None:
        raise psycopg.OperationalError("too many connections")

    with monkeypatch.context() as patch:
        patch.setattr(connections["default"], "get_new_connection", refuse)
        for _ in range(warm.MOST + 1):
            with pytest.raises(OperationalError, match="too many"):
                process()
    assert process() != own()


def test_a_child_begins_with_none_and_closes_none_of_its_parents(monkeypatch: pytest.MonkeyPatch) -> None:
    if is_embedded():
        return
    monkeypatch.setattr(warm, "_of_parent", [])
    before = process()
    parents = list(warm._free)
    warm._begin_in_child()
    assert process() != before
    assert warm._of_parent == parents
    assert not parents[0].closed
    parents[0].close()


def test_moments_are_told_in_our_zone() -> None:
    if is_embedded():
        return
    row = glance("SELECT current_setting('TimeZone')")
    assert row == ("UTC",)
