"""The pool of a worker whose broker it has to poll: a child that is killed takes no lock of the others along.

And nothing in it sleeps while a worker that is told to go could go: billiard's own parts nap for a second each.
"""

import fcntl
import os
import tempfile
import threading
from typing import Any

from billiard import pool

LOOK = 0.2  # seconds between two looks at the children


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


class Child(pool.Worker):
    """Goes when it is done; it need not announce its death and stay until its parent ends it."""

    def _do_exit(self, pid: int, exitcode: int | None, exc: Exception | None = None) -> None:
        code = exitcode if exitcode is not None else pool.EX_FAILURE if exc else pool.EX_OK
        try:
            if self.on_exit is not None:
                self.on_exit(pid, code)
        finally:
            os._exit(code)


class Caretaker(pool.Supervisor):
    """Replaces children that died, until it is told that no more are needed."""

    def __init__(self, cared_for: pool.Pool) -> None:
        self._is_over = threading.Event()
        super().__init__(cared_for)

    def body(self) -> None:
        try:
            while not self._is_over.wait(LOOK):
                self.pool._maintain_pool()
        except pool.RestartFreqExceeded:
            self.pool.close()
            self.pool.join()
            raise

    def close(self) -> None:
        super().close()
        self._is_over.set()

    def terminate(self) -> None:
        super().terminate()
        self._is_over.set()


class Timekeeper(pool.TimeoutHandler):
    """Ends with its process: it has nothing to finish, and nobody waits until it has slept."""

    def stop(self, timeout: float | None = None) -> None:
        pass


class EnduringPool(pool.Pool):
    """All children take work from one pipe and put answers into another."""

    Worker = Child
    Supervisor = Caretaker
    TimeoutHandler = Timekeeper

    def _setup_queues(self) -> Any:
        super()._setup_queues()
        self._inqueue._rlock, self._outqueue._wlock = KernelLock(), KernelLock()
