"""Restartable: a server of a story that dies when the story says so, and comes back as it was."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
from collections.abc import Sequence
from pathlib import Path

from config.reaper import Reaper, end_groups
from tests.stories.product import wait_until


class Restartable:
    """A running process, known by its number: folder and user, and its command if not given, are read from there."""

    def __init__(self, pid: int, command: Sequence[str] = ()) -> None:
        proc = Path(f"/proc/{pid}")
        self.pid = pid
        self._command = command or [word.decode() for word in (proc / "cmdline").read_bytes().split(b"\0")[:-1]]
        self._folder = os.readlink(proc / "cwd")
        self._uid, self._gid = proc.stat().st_uid, proc.stat().st_gid
        self._again: subprocess.Popen[bytes] | None = None
        self._reaper = Reaper()

    def kill(self, number: int = signal.SIGKILL) -> None:
        """Ends it with a signal, and returns when it is gone."""
        os.kill(self.pid, number)
        assert wait_until(lambda: not is_running(self.pid)), f"{self._command[0]} did not end"
        if self._again is not None:
            self._again.wait()
            self._reaper.forget_group(self.pid)
            self._again = None

    def start(self) -> None:
        """The same program again, for the same user."""
        is_other = self._uid != os.geteuid()
        self._again = subprocess.Popen(
            self._command,
            cwd=self._folder,
            user=self._uid if is_other else None,
            group=self._gid if is_other else None,
            extra_groups=[] if is_other else None,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        self.pid = self._again.pid
        self._reaper.group(self.pid)

    def close(self) -> None:
        if self._again is not None:
            end_groups([self.pid], ask=signal.SIGINT, poll=self._again.poll)
            self._again.wait()
        self._reaper.close()


def is_running(pid: int) -> bool:
    """Whether a process runs; one that ended and waits to be collected does not."""
    with contextlib.suppress(OSError):
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    return False
