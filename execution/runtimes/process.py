"""Conversation: one request into a child's standard input, one bounded answer out of it, until a deadline."""

import contextlib
import os
import selectors
import subprocess
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import IO

from execution.runtimes.cancel import Cancel, waking

KEPT_ERRORS = 64_000  # bytes of standard error that are kept
MAX_ERRORS = 4_000_000  # bytes of it after which the child is no longer listened to
_CHUNK = 65536


class Overrun(Exception):
    """The child did not end in time."""


class Cancelled(Exception):
    """Nobody wanted the answer any more."""


class TooMuch(Exception):
    """The child said more than its caller is ready to take."""

    def __init__(self, limit: int) -> None:
        super().__init__(f"more than {limit} bytes")
        self.limit = limit


@dataclass(frozen=True, slots=True)
class Answer:
    """All that a child said, and how it ended; negative numbers are signals."""

    returncode: int
    output: bytes
    errors: bytes


class Conversation:
    """A child process in the hands of one caller, who ends it; leaving the block lets go of its pipes."""

    def __init__(self, command: Sequence[str], environment: Mapping[str, str]) -> None:
        self.process = subprocess.Popen(
            list(command),
            env=dict(environment),
            cwd="/",
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            bufsize=0,
            start_new_session=True,
        )
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        assert self.process.stderr is not None
        self._input, self._output, self._errors = self.process.stdin, self.process.stdout, self.process.stderr
        for pipe in (self._input, self._output, self._errors):
            os.set_blocking(pipe.fileno(), False)

    def __enter__(self) -> "Conversation":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for pipe in (self._input, self._output, self._errors):
            with contextlib.suppress(OSError):
                pipe.close()

    def ask(self, request: bytes, *, deadline: float, cancel: Cancel, max_answer: int) -> Answer:
        """What the child answers until it ends; Overrun, Cancelled or TooMuch leave it running."""
        woken, wake = os.pipe()
        try:
            with waking(cancel, lambda: _ring(wake)), selectors.DefaultSelector() as ready:
                ready.register(woken, selectors.EVENT_READ)
                ready.register(self._input, selectors.EVENT_WRITE)
                ready.register(self._output, selectors.EVENT_READ)
                ready.register(self._errors, selectors.EVENT_READ)
                return self._listen(ready, woken, memoryview(request), deadline, max_answer)
        finally:
            os.close(woken)
            os.close(wake)

    def _listen(
        self, ready: selectors.BaseSelector, woken: int, unsent: memoryview, deadline: float, max_answer: int
    ) -> Answer:
        output, errors = bytearray(), bytearray()
        errors_seen = 0
        while len(ready.get_map()) > 1:
            for key, _ in ready.select(_left(deadline)):
                if key.fd == woken:
                    raise Cancelled
                if key.fileobj is self._input:
                    unsent = unsent[_sent(self._input, unsent) :]
                    if not unsent:
                        ready.unregister(self._input)
                        self._input.close()
                    continue
                chunk = os.read(key.fd, _CHUNK)
                if not chunk:
                    ready.unregister(key.fileobj)
                elif key.fileobj is self._output:
                    output += chunk
                    if len(output) > max_answer:
                        raise TooMuch(max_answer)
                else:
                    errors += chunk[: KEPT_ERRORS - len(errors)]
                    errors_seen += len(chunk)
                    if errors_seen > MAX_ERRORS:
                        raise TooMuch(MAX_ERRORS)
        try:
            returncode = self.process.wait(_left(deadline))
        except subprocess.TimeoutExpired:
            raise Overrun from None
        if errors_seen > len(errors):
            del errors[errors.rfind(b"\n") + 1 :]  # A secret in a line that was cut would no longer be recognised.
        return Answer(returncode, bytes(output), bytes(errors))


def _sent(pipe: IO[bytes], unsent: memoryview) -> int:
    """How much the child took; all of it if it listens no more, for it may answer nevertheless."""
    try:
        return os.write(pipe.fileno(), unsent[:_CHUNK])
    except BlockingIOError:
        return 0
    except BrokenPipeError:
        return len(unsent)


def _left(deadline: float) -> float:
    left = deadline - time.monotonic()
    if left <= 0:
        raise Overrun
    return left


def _ring(wake: int) -> None:
    with contextlib.suppress(OSError):
        os.write(wake, b"!")
