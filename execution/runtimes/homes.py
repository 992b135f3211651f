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
        self._base, self._lock = _begun(parent)

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
                lock = _locked(left)
                try:
                    shutil.rmtree(left, ignore_errors=True)
                finally:
                    os.close(lock)


def _begun(parent: Path) -> tuple[Path, int]:
    """A new folder and the lock on it; another process that sweeps may take one away before it is locked."""
    while True:
        base = Path(tempfile.mkdtemp(prefix=_PREFIX, dir=parent))
        with contextlib.suppress(BlockingIOError, FileNotFoundError):
            lock = _locked(base)
            if os.fstat(lock).st_nlink:
                return base, lock
            os.close(lock)


def _locked(folder: Path) -> int:
    """Holds the lock of a folder until it is closed; BlockingIOError if somebody else does."""
    lock = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BaseException:
        os.close(lock)
        raise
    return lock
