"""The bell: news of a call reaches every process that waits, at once, and a waiting door leaves the database alone."""

from __future__ import annotations

import contextlib
import os
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
from django.conf import settings
from django.db import connection, transaction

from execution import bell, calls, dispatch
from execution.models import Call, State
from tests.execution.conftest import Call as MakeCall

pytestmark = pytest.mark.django_db(transaction=True)

SOON = 2.0  # seconds; most of it is a slow machine's


class Enough(BaseException):
    """Ends a listener, which in the product listens for ever."""


@pytest.fixture(autouse=True)
def _rings_are_heard() -> None:
    """Here by nobody but those who really listen."""


@pytest.fixture
def heard(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[list[str]]:
    """A listener as in a process of its own, and what it hears."""
    topics: list[str] = []
    is_heard, is_ready = bell._heard, threading.Event()

    def listen() -> None:
        with contextlib.suppress(Enough):
            (bell._listen_postgresql if connection.vendor == "postgresql" else bell._listen_local)(is_ready)

    def hear(topic: str) -> None:
        if threading.current_thread() is listener:
            if topic == "enough":
                raise Enough
            topics.append(topic)
        is_heard(topic)

    monkeypatch.setattr(settings, "PLACET_HOME", tmp_path)
    monkeypatch.setattr(bell, "_mouth", None)
    monkeypatch.setattr(bell, "_heard", hear)
    listener = threading.Thread(target=listen)
    listener.start()
    assert is_ready.wait(10)
    yield topics
    while listener.is_alive():
        ring_from_outside("enough")
        listener.join(0.2)
    if bell._mouth is not None:
        bell._mouth[1].close()
        os.close(bell._mouth[2])


def ring_from_outside(topic: str) -> None:
    """As another process does."""
    if connection.vendor == "postgresql":
        with connection.cursor() as cursor:
            cursor.execute("SELECT pg_notify(%s, %s)", [bell.CHANNEL, topic])
        return
    with contextlib.suppress(OSError), socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as mouth:
        mouth.sendto(topic.encode(), str(settings.PLACET_HOME / "bells" / f"{os.getpid()}.sock"))


def soon(holds: Callable[[], bool], seconds: float = SOON) -> bool:
    deadline = time.monotonic() + seconds
    while not holds() and time.monotonic() < deadline:
        time.sleep(0.01)
    return holds()


def test_a_ring_from_another_process_is_heard(heard: list[str]) -> None:
    rung = threading.Event()
    with bell.listening("call-1", rung.set):
        ring_from_outside("call-2")
        ring_from_outside("call-1")
        assert rung.wait(SOON)
    assert heard == ["call-2", "call-1"]
    assert bell._ears == {}


def test_words_from_another_process_reach_those_who_want_them_and_wake_the_others(heard: list[str]) -> None:
    words: list[str] = []
    rung = threading.Event()
    longest = "é" * (bell.MAX_WORDS // 2)
    with bell.hearing("call-1", words.append), bell.listening("call-1", rung.set):
        ring_from_outside("call-1")
        ring_from_outside('call-1\n{"a": "\\n"}')
        ring_from_outside(f"call-1\n{longest}")
        assert soon(lambda: len(words) == 3)
        assert rung.is_set()
    assert words == ["", '{"a": "\\n"}', longest]


def test_what_is_said_reaches_this_process_and_the_others_and_has_a_bounded_length(heard: list[str]) -> None:
    words: list[str] = []
    with bell.hearing("call-1", words.append):
        bell.say("call-1", "here", is_local=True)
        assert words == ["here"]
        bell.say("call-1", "everywhere")
        assert soon(lambda: "everywhere" in words)
    with pytest.raises(AssertionError):
        bell.say("call-1", "x" * (bell.MAX_WORDS + 1))


def test_nobody_hears_of_what_was_not_committed(heard: list[str]) -> None:
    with contextlib.suppress(ZeroDivisionError), transaction.atomic():
        bell.ring("undone")
        raise ZeroDivisionError
    with transaction.atomic():
        bell.ring("done")
        time.sleep(0.1)
        assert heard == []
    ring_from_outside("after")
    assert soon(lambda: "after" in heard)
    assert "undone" not in heard


def test_the_ear_of_a_dead_process_is_removed_and_a_deaf_one_holds_nobody_up(heard: list[str]) -> None:
    bells = bell._sockets()
    with closing(socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)) as dead:
        dead.bind(str(bells / "1.sock"))
    with closing(socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)) as deaf:
        deaf.bind(str(bells / "2.sock"))
        began = time.monotonic()
        for _ in range(2_000):
            bell._send("flood")
        assert time.monotonic() - began < 5
        assert not (bells / "1.sock").exists()
        assert (bells / "2.sock").exists()


def test_a_listener_that_lost_its_connection_listens_again(heard: list[str]) -> None:
    cut_connections()

    def is_heard() -> bool:
        ring_from_outside("again")
        time.sleep(0.1)
        return "again" in heard

    assert soon(is_heard, 10)


def cut_connections() -> None:
    """What the restart of a server does to those who listen; on one machine there is no server between."""
    if connection.vendor == "postgresql":
        with connection.cursor() as cursor:
            cursor.execute(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
                " WHERE datname = current_database() AND query LIKE %s",
                [f"LISTEN {bell.CHANNEL}%"],
            )
            assert cursor.fetchall() == [(True,)]


def test_a_waiting_door_looks_at_the_row_once_a_second_at_most(
    call: MakeCall, unsent: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    waiting = call("Slow", ledger="/nowhere", seconds=0)
    looks: list[Any] = []
    read = calls.read

    def look(id: UUID) -> Call | None:
        looks.append(id)
        return read(id)

    monkeypatch.setattr(calls, "read", look)
    assert dispatch.follow(waiting.id, wait=2.2).state == State.QUEUED
    assert 2 <= len(looks) <= 4


def test_a_waiting_door_answers_as_soon_as_the_call_ends(call: MakeCall, unsent: list[Any], heard: list[str]) -> None:
    waiting = call("Slow", ledger="/nowhere", seconds=0)
    ended_at: list[float] = []

    def end() -> None:
        """As another process does."""
        try:
            Call.objects.filter(pk=waiting.id).update(
                state=State.CANCELLED, sealed=None, resend_at=None, finished_at=datetime.now(UTC)
            )
            ended_at.append(time.monotonic())
            ring_from_outside(str(waiting.id))
        finally:
            connection.close()

    ending = threading.Timer(1.3, end)  # off the beat on which the door looks for itself
    ending.start()
    outcome = dispatch.follow(waiting.id, wait=10)
    assert time.monotonic() - ended_at[0] < 0.5
    assert outcome.state == State.CANCELLED
    ending.join()
