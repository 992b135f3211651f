"""Homes: a private folder for each host, gone with it, and swept up later if nobody was left to do so."""

import contextlib
import fcntl
import os
import shutil
import tempfile
from pathlib import Path

_PREFIX = "placet-hosts-"


class Homes:
    """The folders of one process's hosts, under one folder that is locked while the process lives."""

    def __init__(self, parent: Path | None = None) -> None:
        parent = Path(parent or tempfile.gettempdir())
        self._sweep(parent)
        self._base = Path(tempfile.mkdtemp(prefix=_PREFIX, dir=parent))
        self._lock = os.open(self._base, os.O_RDONLY)
        fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)

    def new(self) -> Path:
        return Path(tempfile.mkdtemp(dir=self._base))

    def remove(self) -> None:
        shutil.rmtree(self._base, ignore_errors=True)
        self.forget()

    def forget(self) -> None:
        """Lets go without removing anything: in a forked copy the folders belong to the process it came from."""
        if self._lock >= 0:
            os.close(self._lock)
            self._lock = -1

    @staticmethod
    def _sweep(parent: Path) -> None:
        """Removes what killed processes left behind: folders of ours that nobody holds locked any more."""
        for left in parent.glob(f"{_PREFIX}*"):
            with contextlib.suppress(OSError):
                if left.is_symlink() or left.stat().st_uid != os.getuid():
                    continue
                fd = os.open(left, os.O_RDONLY | os.O_DIRECTORY)
                try:
                    fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    shutil.rmtree(left, ignore_errors=True)
                finally:
                    os.close(fd)
