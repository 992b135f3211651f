"""Host: one process that runs the tools of one folder, seen from the side that starts, asks and kills it."""

import contextlib
import math
import os
import select
import shutil
import signal
import socket
import struct
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import orjson

from execution.runtimes.walls import OPEN, Walls, tell
from placet import child

FINAL = frozenset(("value", "content", "error"))
_CHUNK = 65536
_SIDE_TALK = 4_000_000  # bytes of progress and logs in one call; a host that keeps to its own bounds stays below
_GRACE = 0.04  # seconds a process that is gone may take to say how it ended
_LONG_GRACE = 1.0  # the same for one that never listened: its status may say why, and no tool's time is running
_MAX_STRAYS = 1000
_SHORTEST = 2.0**-10  # seconds; zero would mean that the kernel waits for ever


class HostError(Exception):
    """A call that a host did not answer. `is_started` says whether the tool may have begun."""

    def __init__(self, message: str, *, is_started: bool) -> None:
        super().__init__(message)
        self.is_started = is_started


class HostTimeout(HostError):
    """The tool ran until its time was up, and was killed."""

    def __init__(self) -> None:
        super().__init__("The tool took too long", is_started=True)


class HostCancelled(HostError):
    """Nobody wanted the answer any more; the tool was killed if it ran."""

    def __init__(self, *, is_started: bool) -> None:
        super().__init__("The call was cancelled", is_started=is_started)


class HostBusy(HostError):
    """No host was free and ready before the time was up: the tool was never called."""

    def __init__(self, message: str = "No host was free in time") -> None:
        super().__init__(message, is_started=False)


class HostCrashed(HostError):
    """The host ended, or spoke nonsense, before it answered."""

    def __init__(self, returncode: int | None, *, is_started: bool) -> None:
        super().__init__(f"The tool's process ended unexpectedly ({returncode})", is_started=is_started)
        self.returncode = returncode


class AnswerTooLarge(HostError):
    """The tool said more than its caller is ready to take."""

    def __init__(self, limit: int) -> None:
        super().__init__(f"The tool's answer is larger than {limit} bytes", is_started=True)
        self.limit = limit


class Host:
    """The process, our end of its socket and its home; in the hands of one caller at a time."""

    __slots__ = ("_buffer", "_home", "_is_ready", "_patience", "_process", "_sock", "serves")

    def __init__(self, folder: Path, home: Path, walls: Walls = OPEN) -> None:
        self.serves = (folder, walls)
        self._home = home
        self._is_ready = False
        self._buffer = bytearray()
        self._sock, theirs = socket.socketpair()
        self._patience = 0.0  # seconds after which the kernel ends a wait for bytes; none yet
        options = ["--fd", str(theirs.fileno()), "--folder", str(folder), "--parent", str(os.getpid())]
        options += walls.options(home)
        try:
            self._process = subprocess.Popen(
                child.command("placet.host", *options),
                env=child.environment(home),
                cwd=home,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                pass_fds=(theirs.fileno(),),
                start_new_session=True,
            )
        except BaseException:
            self._sock.close()
            raise
        finally:
            theirs.close()

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def is_starting(self) -> bool:
        """Whether it has yet to say that it listens."""
        return not self._is_ready

    def is_fit(self) -> bool:
        """Whether an idle host still lives and has kept silent since its last answer, or is only about to listen."""
        if self.is_starting:
            return self._process.poll() is None
        if self._buffer:
            return False
        try:
            self._sock.recv(1, socket.MSG_PEEK | socket.MSG_DONTWAIT)
        except BlockingIOError:
            return True
        except OSError:
            pass
        return False

    def await_ready(self, deadline: float) -> None:
        """Returns once a new host has said that it listens; an old one has long done so."""
        if self._is_ready:
            return
        try:
            frame, _ = self._receive(deadline, _CHUNK)
        except TimeoutError:
            raise HostBusy("No host was ready in time") from None
        except (EOFError, OSError, ValueError) as error:
            raise self._crashed(is_started=False) from error
        tell(frame.get("missing"))
        self._is_ready = True

    def ask(self, request: dict[str, Any], deadline: float, max_answer: int) -> Iterator[dict[str, Any]]:
        """Sends a request and gives the frames that come back; the last one is final."""
        is_started = False
        try:
            self._send({**request, "max_answer": max_answer}, deadline)
            is_started = True
            allowance = _SIDE_TALK
            while True:
                frame, length = self._receive(deadline, max(max_answer, _CHUNK))
                if frame["kind"] in FINAL:
                    break
                allowance -= length
                if allowance < 0:
                    raise AnswerTooLarge(_SIDE_TALK)
                yield frame
        except TimeoutError:
            raise HostTimeout() if is_started else HostBusy("No host was ready in time") from None
        except (EOFError, OSError, ValueError) as error:
            raise self._crashed(is_started=is_started) from error
        yield frame

    def hang_up(self) -> None:
        """Makes our own end read as closed, whoever else may hold the other."""
        with contextlib.suppress(OSError):
            self._sock.shutdown(socket.SHUT_RDWR)

    def kill(self) -> None:
        """Ends the process, its group and its descendants; does not wait for them."""
        if self._process.returncode is not None:
            return  # Reaped: the number may be somebody else's by now.
        strays = _descendants(self.pid)
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self.pid, signal.SIGKILL)
        for stray in strays:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(stray, signal.SIGKILL)

    def bury(self) -> None:
        """Reaps the killed process and removes what it left on disk."""
        self._sock.close()
        self._process.wait()
        shutil.rmtree(self._home, ignore_errors=True)

    def forget(self) -> None:
        """Lets go of a host that belongs to the process we were forked from."""
        self._sock.close()
        self._process.returncode = 0  # Not our child: nothing to wait for, nothing to warn about.

    def _crashed(self, *, is_started: bool) -> HostCrashed:
        self.kill()
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(_GRACE if is_started else _LONG_GRACE)
        return HostCrashed(self._process.returncode, is_started=is_started)

    def _send(self, frame: dict[str, Any], deadline: float) -> None:
        body = orjson.dumps(frame)
        unsent = memoryview(len(body).to_bytes(4, "big") + body)
        while unsent:
            left = _left(deadline)
            try:
                unsent = unsent[self._sock.send(unsent, socket.MSG_DONTWAIT) :]
            except BlockingIOError:
                select.select([], [self._sock], [], left)

    def _receive(self, deadline: float, limit: int) -> tuple[dict[str, Any], int]:
        buffer = self._buffer
        self._fill(4, deadline)
        length = int.from_bytes(buffer[:4], "big")
        if length > limit:
            raise AnswerTooLarge(limit)
        self._fill(4 + length, deadline)
        frame = orjson.loads(buffer[4 : 4 + length])
        del buffer[: 4 + length]
        if type(frame) is not dict or type(frame.get("kind")) is not str:
            raise ValueError("not a frame")
        return frame, length

    def _fill(self, length: int, deadline: float) -> None:
        buffer, sock = self._buffer, self._sock
        while True:
            left = _left(deadline)  # Asked even when the bytes are here, so that a flood cannot outlive its time.
            if len(buffer) >= length:
                return
            self._wait_no_longer_than(left)
            try:
                chunk = sock.recv(_CHUNK)
            except BlockingIOError:
                continue
            if not chunk:
                raise EOFError
            buffer += chunk

    def _wait_no_longer_than(self, left: float) -> None:
        """Has the kernel end a wait in time, and so seldom that setting it costs nothing: by powers of two."""
        patience = max(_SHORTEST, 2.0 ** (math.frexp(left)[1] - 1))  # at most `left`, and more than half of it
        if patience != self._patience:
            span = struct.pack("@ll", int(patience), int(patience % 1 * 1_000_000))
            self._sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVTIMEO, span)
            self._patience = patience


def _left(deadline: float) -> float:
    left = deadline - time.monotonic()
    if left <= 0:
        raise TimeoutError
    return left


def _descendants(pid: int) -> list[int]:
    """The processes below one, also those that left its group: it adopts its orphans, so they stay below it."""
    found: list[int] = []
    below = [pid]
    while below and len(found) < _MAX_STRAYS:
        with contextlib.suppress(OSError, ValueError):
            tasks = f"/proc/{below.pop()}/task"
            for task in os.listdir(tasks):
                with open(f"{tasks}/{task}/children") as listing:
                    children = [int(word) for word in listing.read().split()]
                found += children
                below += children
    return found
