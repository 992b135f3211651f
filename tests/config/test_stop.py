"""A signal that comes at any moment is heard, and never stops whoever hears it."""

from __future__ import annotations

import subprocess
import sys

from config.stop import Stop

STORM = """
import random, signal
from config.stop import Stop

stop = Stop()
signal.signal(signal.SIGALRM, lambda *_: stop.set())
for _ in range(5000):
    stop = Stop()
    signal.setitimer(signal.ITIMER_REAL, random.uniform(1e-5, 2e-4))
    while not stop.wait(1e-6):
        pass
print("heard all")
"""


def test_a_signal_that_comes_while_one_waits_is_heard() -> None:
    """With an Event in its place, this hangs within a few hundred rounds."""
    done = subprocess.run([sys.executable, "-c", STORM], capture_output=True, text=True, timeout=60)
    assert (done.stdout, done.stderr) == ("heard all\n", "")


def test_who_was_not_asked_goes_on_and_who_was_need_not_wait() -> None:
    stop = Stop()
    assert not stop.wait(0.001)
    assert not stop.is_set()
    stop.set()
    assert stop.wait(60)
    assert stop.is_set()
