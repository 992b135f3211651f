"""A small process that outlives its owner just long enough to clean up after it.

The owner holds the only write end of a pipe and says what it started and made. However the owner goes, by Ctrl-C or by
kill -9, the pipe closes, and what was not taken back by then is ended and removed. Unlike a parent-death signal this
reaches whole process groups, insists when a process does not listen, and does not care which thread started what.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterable
from pathlib import Path

PATIENCE = 10.0  # seconds between asking a process group to stop and ending it


class Reaper:
    """Promises that process groups and folders named to it do not outlive this process."""

    def __init__(self, keep_open: Iterable[int] = ()) -> None:
        # Isolated and without site-packages: it starts in milliseconds and costs little memory.
        self._process = subprocess.Popen(
            [sys.executable, "-I", "-S", __file__],
            stdin=subprocess.PIPE,
            pass_fds=tuple(keep_open),
            start_new_session=True,
        )

    def group(self, pid: int) -> None:
        """Take over the process group led by `pid`."""
        self._say(f"+group {pid}")

    def folder(self, path: Path) -> None:
        """Take over a folder."""
        self._say(f"+folder {path}")

    def forget_group(self, pid: int) -> None:
        """The group has been ended by its owner: its number may soon mean someone else."""
        self._say(f"-group {pid}")

    def close(self) -> None:
        """Clean up now, and wait until that is done."""
        assert self._process.stdin is not None
        with contextlib.suppress(BrokenPipeError):
            self._process.stdin.close()
        self._process.wait()

    def _say(self, line: str) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(f"{line}\n".encode())
        self._process.stdin.flush()


def end_groups(
    pids: Iterable[int],
    *,
    ask: int = signal.SIGTERM,
    patience: float = PATIENCE,
    poll: Callable[[], object] = lambda: None,
) -> None:
    """End process groups: ask, wait, insist; `poll` lets a parent collect its dead children meanwhile.

    Only the leader is asked, for it knows how to end its own children; orphans of a leader that is gone are asked too.
    """
    waiting = set(pids)
    asked: set[int] = set()
    deadline = time.monotonic() + patience
    while True:
        living, groups = _living()
        waiting &= groups
        for pid in (waiting & living) - asked:
            _signal(os.kill, pid, ask)
        asked |= waiting & living
        for pid in waiting - living:
            _signal(os.killpg, pid, ask)
        if not waiting or time.monotonic() >= deadline:
            break
        time.sleep(0.05)
        poll()
    for pid in waiting:
        _signal(os.killpg, pid, signal.SIGKILL)
    poll()


def _signal(send: Callable[[int, int], None], pid: int, number: int) -> None:
    # Gone, or by now a process of someone else's: either way not the one we were told of.
    with contextlib.suppress(ProcessLookupError, PermissionError):
        send(pid, number)


def _living() -> tuple[set[int], set[int]]:
    """The processes that run and the groups they are in. The dead that nobody has collected yet do not count."""
    processes, groups = set(), set()
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            with contextlib.suppress(OSError):
                state, _, group = (entry / "stat").read_text().rpartition(")")[2].split()[:3]
                if state not in "ZX":
                    processes.add(int(entry.name))
                    groups.add(int(group))
    return processes, groups


def _watch() -> None:
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    held: set[str] = set()
    for line in sys.stdin:
        sign, what = line[0], line[1:].rstrip("\n")
        if sign == "+":
            held.add(what)
        else:
            held.discard(what)
    groups = [int(what.removeprefix("group ")) for what in held if what.startswith("group ")]
    folders = [what.removeprefix("folder ") for what in held if what.startswith("folder ")]
    end_groups(groups)
    for folder in folders:
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    _watch()
