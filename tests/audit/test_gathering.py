"""What comes within a moment is handed over together, in order, each thing once, and never by who brings it."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable

import pytest

from audit.gathering import Gathering


class Desk:
    """Whoever takes what was gathered."""

    def __init__(self) -> None:
        self.taken: list[list[int]] = []
        self.threads: set[str] = set()
        self.refuses = False

    def take(self, items: list[int]) -> None:
        self.taken.append(items)
        self.threads.add(threading.current_thread().name)
        if self.refuses:
            raise RuntimeError("not now")

    @property
    def all(self) -> list[int]:
        return [item for items in self.taken for item in items]


@pytest.fixture
def desk() -> Desk:
    return Desk()


def until(is_so: Callable[[], bool]) -> bool:
    deadline = time.monotonic() + 10
    while not is_so() and time.monotonic() < deadline:
        time.sleep(0.005)
    return is_so()


def test_what_comes_in_a_moment_is_taken_together_by_another_thread(desk: Desk) -> None:
    gathering = Gathering(0.2, desk.take)
    for item in range(100):
        gathering.add(item)
    assert desk.taken == []
    assert until(lambda: len(desk.all) == 100)
    assert desk.all == list(range(100))
    assert len(desk.taken) < 10
    assert desk.threads == {"placet-gathering"}


def test_nobody_has_to_wait_for_the_moment_to_pass(desk: Desk) -> None:
    gathering = Gathering(60.0, desk.take)
    gathering.add(1)
    gathering.flush()
    gathering.flush()
    assert desk.taken == [[1]]


def test_what_was_refused_is_not_kept_and_what_follows_is_taken(desk: Desk) -> None:
    gathering = Gathering(0.01, desk.take)
    desk.refuses = True
    gathering.add(1)
    assert until(lambda: desk.all == [1])
    desk.refuses = False
    gathering.add(2)
    assert until(lambda: desk.all == [1, 2])


def test_nothing_is_lost_or_doubled_while_many_bring_and_some_ask_for_it(desk: Desk) -> None:
    gathering = Gathering(0.001, desk.take)

    def bring(first: int) -> None:
        for item in range(first, first + 500):
            gathering.add(item)
            if item % 50 == 0:
                gathering.flush()

    threads = [threading.Thread(target=bring, args=(first,)) for first in range(0, 4000, 500)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    gathering.flush()
    assert sorted(desk.all) == list(range(4000))


def test_a_fork_hands_over_its_own_things_only() -> None:
    ear, mouth = os.pipe()

    def tell(items: list[int]) -> None:
        os.write(mouth, bytes(items))

    gathering = Gathering(60.0, tell)
    gathering.add(1)
    if (child := os.fork()) == 0:
        gathering.flush()  # what its parent gathered is its parent's
        gathering.add(2)
        gathering.flush()
        os._exit(0)
    os.waitpid(child, 0)
    gathering.flush()
    os.close(mouth)
    with os.fdopen(ear, "rb") as told:
        assert told.read() == bytes([2, 1])


def test_of_those_who_come_first_at_the_same_time_one_starts_the_thread(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    start, started = threading.Thread.start, []

    def start_slowly(thread: threading.Thread) -> None:
        if thread.name == "placet-gathering":
            started.append(thread)
            time.sleep(0.05)  # the others come meanwhile
        start(thread)

    monkeypatch.setattr(threading.Thread, "start", start_slowly)
    gathering, together = Gathering(60.0, desk.take), threading.Barrier(4)

    def bring(item: int) -> None:
        together.wait()
        gathering.add(item)

    threads = [threading.Thread(target=bring, args=(item,)) for item in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    gathering.flush()
    assert sorted(desk.all) == [0, 1, 2, 3]
    assert len(started) == 1
