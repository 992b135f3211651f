"""SealFile: the copy of every seal outside the database, which only ever grows."""

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from django.conf import settings

from audit.statement import Statement

_TAIL = 64 * 1024


class SealFile:
    """One seal per line, oldest first; held by one sealer at a time."""

    def __init__(self, path: Path | None = None) -> None:
        self.path = path or Path(settings.PLACET_HOME) / "seals.jsonl"

    @contextmanager
    def held(self) -> Iterator[bool]:
        """Hold the file for the length of the block; False if somebody else does."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        handle = os.open(self.path, os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                yield False
                return
            yield True
        finally:
            os.close(handle)

    def append(self, statement: Statement) -> None:
        """Add one line and wait until it is on the disk."""
        is_new = not self.path.exists() or self.path.stat().st_size == 0
        handle = os.open(self.path, os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            # A line torn by a crash stays, as everything in this file does; the new line begins below it.
            is_torn = not is_new and os.pread(handle, 1, os.fstat(handle).st_size - 1) != b"\n"
            line = b"\n" + statement.line if is_torn else statement.line
            if os.write(handle, line) != len(line):
                raise OSError(f"{self.path}: the disk took only a part of a seal.")
            os.fsync(handle)
        finally:
            os.close(handle)
        if is_new:
            _sync_folder(self.path.parent)

    def size(self) -> int:
        """How many bytes there are now; what is added later lies beyond."""
        return self.path.stat().st_size if self.path.exists() else 0

    def lines(self, size: int) -> Iterator[Statement | None]:
        """Every line within the first `size` bytes, oldest first; None for one that is not a whole seal."""
        if not self.path.exists():
            return
        with self.path.open("rb") as file:
            for line in file:
                size -= len(line)
                if size < 0:
                    return
                if line.strip():
                    yield Statement.parse(line)

    def after(self, n: int) -> list[Statement]:
        """The whole, signed seals with numbers above n, oldest first."""
        if not self.path.exists():
            return []
        with self.path.open("rb") as file:
            size = file.seek(0, os.SEEK_END)
            file.seek(max(0, size - _TAIL))
            recent = [Statement.parse(line) for line in file.read().splitlines()]
        seen = [statement for statement in recent if statement is not None]
        if size > _TAIL and (not seen or seen[0].n > n + 1):
            seen = [statement for statement in self.lines(size) if statement is not None and statement.n > n]
        return [statement for statement in seen if statement.n > n and statement.is_signed()]


def _sync_folder(folder: Path) -> None:
    """Make the new file's name as durable as its content."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
