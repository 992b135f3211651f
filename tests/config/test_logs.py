"""One event is one line; those about calls are written a moment later, many at once, each of them once."""

from __future__ import annotations

import io
import logging
import os
import subprocess
import sys
import threading
import time

import pytest
from billiard.einfo import ExceptionInfo
from celery.exceptions import WorkerLostError

from config.logs import FactsFormatter, GatheringHandler, LineFormatter


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


def test_a_message_that_ends_in_a_line_end_ends_there_and_others_are_shown() -> None:
    record = logging.LogRecord("kombu", logging.ERROR, "", 0, "refused.\nTrying again.\r\n\n", None, None)
    assert LineFormatter().format(record).endswith("kombu  refused.\\x0aTrying again.")


def test_a_lost_worker_is_one_line_without_an_exit_code() -> None:
    try:
        raise WorkerLostError("Worker exited prematurely: exitcode 0 Job: 12.")
    except WorkerLostError as error:
        lost, told = error, ExceptionInfo().exc_info  # as Celery tells it
    message = "Task handler raised error: %r"
    line = LineFormatter().format(
        logging.LogRecord("celery.worker.request", logging.ERROR, "", 0, message, (lost,), told)
    )
    assert "was lost" in line
    assert "\n" not in line
    assert "exitcode" not in line


def test_any_other_failure_keeps_its_traceback() -> None:
    try:
        raise ValueError("no number")
    except ValueError as error:
        record = logging.LogRecord(
            "celery.worker.request", logging.ERROR, "", 0, "%r", (error,), (ValueError, error, error.__traceback__)
        )
    first, *trace = LineFormatter().format(record).splitlines()
    assert first.endswith("ValueError('no number')")
    assert trace[0] == "    Traceback (most recent call last):"


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
