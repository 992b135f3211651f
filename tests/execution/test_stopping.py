"""A server that is told to end is heard by those who hold a connection, beside its own handlers."""

from __future__ import annotations

import subprocess
import sys

PROGRAM = """
import os, signal, threading, time
from execution import stopping
before = {before}
signal.signal(signal.SIGTERM, lambda *_: print("its own handler"))
{watch}
os.kill(os.getpid(), signal.{sent})
deadline = time.monotonic() + 2
while not stopping.is_stopping() and time.monotonic() < deadline:
    time.sleep(0.01)
print(stopping.is_stopping(), signal.set_wakeup_fd(-1) == before)
"""


def told(*, before: str = "-1", watch: str = "stopping.watch()", sent: str = "SIGTERM") -> list[str]:
    program = PROGRAM.format(before=before, watch=watch, sent=sent)
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=20)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def test_a_signal_to_end_reaches_the_servers_handler_and_whoever_asks() -> None:
    assert told() == ["its own handler", "True False"]


def test_a_server_that_listens_in_this_way_itself_is_left_alone() -> None:
    theirs = "(lambda ends: (os.set_blocking(ends[1], False), signal.set_wakeup_fd(ends[1]), ends[1])[2])(os.pipe())"
    assert told(before=theirs) == ["its own handler", "False True"]


def test_outside_of_the_main_thread_nothing_is_heard_and_nothing_breaks() -> None:
    watch = "thread = threading.Thread(target=stopping.watch); thread.start(); thread.join()"
    assert told(watch=watch) == ["its own handler", "False True"]


def test_other_signals_mean_nothing() -> None:
    assert told(watch="signal.signal(signal.SIGUSR1, lambda *_: None); stopping.watch()", sent="SIGUSR1") == [
        "False False"
    ]
