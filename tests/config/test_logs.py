"""Lines about calls are written a moment later, many at once, each of them once."""

from __future__ import annotations

import io
import logging
import os
import subprocess
import sys
import threading
import time

import pytest

from config.logs import FactsFormatter, GatheringHandler


class Paper(io.StringIO):
    """A stream that counts how often it is written to."""

    writes = 0

    def write(self, text: str) -> int:
        self.writes += 1
        return super().write(text)


@pytest.fixture
def paper() -> Paper:
    return Paper()


@pytest.fixture
def handler(paper: Paper) -> GatheringHandler:
    made = GatheringHandler()
    made.setFormatter(FactsFormatter())
    made.setStream(paper)
    return made


def said(text: str) -> logging.LogRecord:
    return logging.LogRecord("placet.telemetry", logging.INFO, "", 0, text, None, None)


def until(paper: Paper, lines: int) -> list[str]:
    deadline = time.monotonic() + 10
    while len(found := paper.getvalue().splitlines()) < lines and time.monotonic() < deadline:
        time.sleep(0.01)
    return found


def test_lines_of_a_moment_are_written_together_and_in_order(handler: GatheringHandler, paper: Paper) -> None:
    lines = [f'{{"n":{number}}}' for number in range(200)]
    for line in lines:
        handler.handle(said(line))
    assert until(paper, 200) == lines
    assert paper.writes < 10
    handler.handle(said("later"))
    assert until(paper, 201)[-1] == "later"


def test_nothing_is_lost_or_doubled_among_threads(handler: GatheringHandler, paper: Paper) -> None:
    def speak(name: int) -> None:
        for number in range(100):
            handler.handle(said(f"{name}:{number}"))

    threads = [threading.Thread(target=speak, args=(name,)) for name in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    handler.flush()
    assert sorted(until(paper, 800)) == sorted(f"{name}:{number}" for name in range(8) for number in range(100))


def test_a_reader_who_is_gone_harms_nobody(handler: GatheringHandler) -> None:
    ear, mouth = os.pipe()
    with os.fdopen(mouth, "w") as stream:
        handler.setStream(stream)
        os.close(ear)
        handler.handle(said("to nobody"))
        time.sleep(3 * GatheringHandler.MOMENT)
        handler.handle(said("still to nobody"))
        time.sleep(3 * GatheringHandler.MOMENT)
        handler.setStream(paper := Paper())
        handler.handle(said("heard"))
        assert until(paper, 1) == ["heard"]  # what nobody took was not kept
        os.dup2(os.open(os.devnull, os.O_WRONLY), mouth)  # so that closing it finds a reader


FORKING = """
import logging, os, sys
from config.logs import GatheringHandler

logger = logging.getLogger("told")
logger.addHandler(GatheringHandler())
logger.warning("before")
child = os.fork()
logger.warning("child" if child == 0 else "parent")
if child:
    os.waitpid(child, 0)
"""


def test_a_fork_tells_its_own_lines_and_both_tell_the_last_ones_at_their_end() -> None:
    done = subprocess.run([sys.executable, "-c", FORKING], capture_output=True, text=True, timeout=60)
    assert sorted(done.stderr.splitlines()) == ["before", "child", "parent"]
