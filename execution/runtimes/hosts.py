"""HostPool: hosts kept warm for the tools that are called often, and killed when a call overruns."""

import atexit
import contextlib
import os
import threading
import time
import weakref
from collections import Counter, defaultdict, deque
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

from execution.runtimes.cancel import Cancel, waking
from execution.runtimes.homes import Homes
from execution.runtimes.host import (
    FINAL,
    AnswerTooLarge,
    Host,
    HostBusy,
    HostCancelled,
    HostCrashed,
    HostError,
    HostTimeout,
)
from execution.runtimes.walls import OPEN, Walls

__all__ = [
    "AnswerTooLarge",
    "Cancel",
    "HostBusy",
    "HostCancelled",
    "HostCrashed",
    "HostError",
    "HostPool",
    "HostTimeout",
]


class Turn:
    """A caller's place in the queue for a folder's hosts; set when it is granted, or when waiting makes no sense."""

    __slots__ = ("_gate", "is_granted")

    def __init__(self) -> None:
        self.is_granted = False
        self._gate = threading.Lock()  # an Event would be three of them, and calls under load wait here
        self._gate.acquire()

    def set(self) -> None:
        with contextlib.suppress(RuntimeError):  # it is open already
            self._gate.release()

    def wait(self, seconds: float) -> None:
        """Once: the gate is shut again behind who passed."""
        self._gate.acquire(timeout=seconds)


class HostPool:
    """Runs calls in hosts, one call per host at a time. Threads may share it; a forked copy starts empty."""

    def __init__(self, *, per_folder: int | None = None, idle: int = 4, homes: Path | None = None) -> None:
        self._per_folder = per_folder or max(2, os.cpu_count() or 1)
        self._max_idle = idle
        self._homes_parent = homes
        self._start_empty()
        _POOLS.add(self)
        atexit.register(_close, weakref.ref(self))

    def _start_empty(self) -> None:
        self._lock = threading.Lock()
        self._hosts: set[Host] = set()
        self._idle: list[Host] = []  # the least recently used one first
        self._busy: Counter[Path] = Counter()
        self._queues: defaultdict[Path, deque[Turn]] = defaultdict(deque)
        self._homes: Homes | None = None
        self._is_closed = False
        # A host dies with the thread that started it, so one that lives as long as the pool starts them all.
        self._spawner = ThreadPoolExecutor(1, thread_name_prefix="placet-hosts-start")
        self._undertaker = ThreadPoolExecutor(1, thread_name_prefix="placet-hosts-end")

    def run(
        self,
        *,
        folder: Path,
        request: dict[str, Any],
        timeout: float,
        patience: float | None = None,
        max_answer: int = 1_000_000,
        cancel: Cancel | None = None,
        on_frame: Callable[[dict[str, Any]], None] | None = None,
        walls: Walls = OPEN,
    ) -> dict[str, Any]:
        """Has a host of the folder answer one request: the final frame, or a HostError, within `timeout` seconds.

        With `patience`, the time until a host is ready is not the tool's and has this limit of its own; without, all
        has to happen in `timeout`, and a host that was not ready by then is kept for the next call. A confined call
        gets a host that ran nothing before, has narrow limits, and ends with it.
        """
        ready_by = time.monotonic() + (timeout if patience is None else patience)
        self._enter(folder, ready_by, cancel)
        host: Host | None = None
        frame: dict[str, Any] = {}
        is_fit = False
        try:
            found = None if walls.is_confined else self._idle_host(folder, walls)
            host = found or self._new_host(folder, ready_by, walls)
            with waking(cancel, host.hang_up):
                host.await_ready(ready_by)
                deadline = ready_by if patience is None else time.monotonic() + timeout
                for frame in host.ask(request, deadline, max_answer):
                    if on_frame is not None and frame["kind"] not in FINAL:
                        on_frame(frame)
            is_fit = not frame.pop("is_spent", False) and not walls.is_confined
        except HostBusy:
            is_kept = patience is None and not walls.is_confined and not _is_set(cancel)
            is_fit = is_kept and host is not None and host.is_starting
            raise
        except HostCrashed as crash:
            if _is_set(cancel):
                raise HostCancelled(is_started=crash.is_started) from None
            raise
        finally:
            self._leave(folder, host, is_fit=is_fit)
        if "limit" in frame:
            raise AnswerTooLarge(max_answer)
        return frame

    def close(self) -> None:
        """Ends every host; calls that still run end as crashed, later ones are refused."""
        with self._lock:
            self._is_closed = True
            idle, self._idle = self._idle, []
            hosts = list(self._hosts)
        for host in hosts:
            host.kill()
        for host in idle:
            self._bury(host)
        self._spawner.shutdown()
        self._undertaker.shutdown()
        if self._homes is not None:
            self._homes.remove()

    def end(self) -> None:
        """For a process that is about to end: idle hosts and all homes go, and nothing is waited for.

        While a call runs it does nothing: that call is lost with its process, and must not be told to have failed.
        """
        with self._lock:
            if self._busy:
                return
            self._is_closed = True
        for host in self._idle:
            host.kill()
        if self._homes is not None:
            self._homes.remove()

    def _enter(self, folder: Path, deadline: float, cancel: Cancel | None) -> None:
        """Takes one of the folder's places, first come, first served."""
        if _is_set(cancel):
            raise HostCancelled(is_started=False)
        with self._lock:
            if self._is_closed:
                raise HostBusy("The pool is closed")
            if self._busy[folder] < self._per_folder:
                self._busy[folder] += 1
                return
            turn = Turn()
            self._queues[folder].append(turn)
        with waking(cancel, turn.set):
            turn.wait(max(0.0, deadline - time.monotonic()))
        is_cancelled = _is_set(cancel)
        with self._lock:
            if turn.is_granted and not is_cancelled:
                return
            if turn.is_granted:
                self._vacate(folder)
            else:
                self._queues[folder].remove(turn)
        raise HostCancelled(is_started=False) if is_cancelled else HostBusy()

    def _vacate(self, folder: Path) -> None:
        """Hands a place to the first who waits for it, or gives it up. Called with the lock held."""
        if queue := self._queues.get(folder):
            turn = queue.popleft()
            turn.is_granted = True
            turn.set()
            return
        self._queues.pop(folder, None)
        self._busy[folder] -= 1
        if not self._busy[folder]:
            del self._busy[folder]

    def _idle_host(self, folder: Path, walls: Walls) -> Host | None:
        """The folder's most recently used idle host with just these walls that is still fit."""
        wanted = (folder, walls)
        while True:
            with self._lock:
                mine = [host for host in self._idle if host.serves == wanted]
                if not mine:
                    return None
                self._idle.remove(mine[-1])
            if mine[-1].is_fit():
                return mine[-1]
            mine[-1].kill()
            self._bury(mine[-1])

    def _new_host(self, folder: Path, deadline: float, walls: Walls) -> Host:
        try:
            starting = self._spawner.submit(self._spawn, folder, walls)
        except RuntimeError:
            raise HostBusy("The pool is closed") from None
        try:
            return starting.result(max(0.0, deadline - time.monotonic()))
        except TimeoutError:
            starting.add_done_callback(self._discard)  # It comes too late for us, and would never be found again.
            raise HostBusy("No host was started in time") from None

    def _spawn(self, folder: Path, walls: Walls) -> Host:
        if self._homes is None:
            self._homes = Homes(self._homes_parent)
        if walls.kept:
            os.makedirs(walls.kept, mode=0o700, exist_ok=True)
        host = Host(folder, self._homes.new(), walls)
        with self._lock:
            self._hosts.add(host)
        return host

    def _discard(self, starting: Future[Host]) -> None:
        if not starting.cancelled() and starting.exception() is None:
            starting.result().kill()
            self._bury(starting.result())

    def _leave(self, folder: Path, host: Host | None, *, is_fit: bool) -> None:
        """Keeps the host for the next call or kills it at once, and gives up the place."""
        ended = None if is_fit else host
        if ended is not None:
            ended.kill()
        with self._lock:
            if host is not None and ended is None:
                self._idle.append(host)
                if self._is_closed or len(self._idle) > self._max_idle:
                    ended = self._idle.pop(0)
            self._vacate(folder)
        if ended is not None:
            if is_fit:
                ended.kill()
            self._bury(ended)

    def _bury(self, host: Host) -> None:
        """Lets a killed host be reaped without making the caller wait."""
        with self._lock:
            self._hosts.discard(host)
        try:
            self._undertaker.submit(host.bury)
        except RuntimeError:  # The pool is closed, or Python is ending.
            host.bury()

    def _after_fork(self) -> None:
        """Starts empty in a forked copy: the hosts, locks and threads belong to the process it came from."""
        for host in self._hosts:
            host.forget()
        if self._homes is not None:
            self._homes.forget()
        self._start_empty()


def _is_set(cancel: Cancel | None) -> bool:
    return cancel is not None and cancel.is_set()


def _close(reference: "weakref.ref[HostPool]") -> None:
    if (pool := reference()) is not None:
        pool.close()


def end_all() -> None:
    """What atexit would see to, for a process that ends without it."""
    for pool in list(_POOLS):
        pool.end()


def _empty_all() -> None:
    for pool in list(_POOLS):
        pool._after_fork()


_POOLS: "weakref.WeakSet[HostPool]" = weakref.WeakSet()
os.register_at_fork(after_in_child=_empty_all)
