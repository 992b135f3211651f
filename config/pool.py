"""The pool of a worker whose broker it has to poll: a child that is killed takes no lock of the others along."""

import fcntl
import tempfile
from typing import Any

from billiard.pool import Pool


class KernelLock:
    """One process at a time; when it ends, however it does, the kernel opens the lock for the next.

    The semaphore in its place stays shut for ever once the child that waits for work is killed, and with it the queue.
    """

    def __init__(self) -> None:
        self._file = tempfile.TemporaryFile()  # noqa: SIM115  open as long as the pool is

    def acquire(self) -> bool:
        fcntl.lockf(self._file, fcntl.LOCK_EX)
        return True

    def release(self) -> None:
        fcntl.lockf(self._file, fcntl.LOCK_UN)

    def __enter__(self) -> bool:
        return self.acquire()

    def __exit__(self, *_: object) -> None:
        self.release()


class EnduringPool(Pool):
    """All children take work from one pipe and put answers into another."""

    def _setup_queues(self) -> Any:
        super()._setup_queues()
        self._inqueue._rlock, self._outqueue._wlock = KernelLock(), KernelLock()
