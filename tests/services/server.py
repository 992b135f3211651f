"""What every server here has in common: a folder of its own, a free port, and an end."""

from __future__ import annotations

import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from config.reaper import Reaper, end_groups


class ServerError(Exception):
    """A server could not be started; the message holds its own last words."""


def free_port() -> int:
    """A port on 127.0.0.1 that nobody listens on at this moment."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


@contextmanager
def scratch(name: str) -> Iterator[tuple[Path, Reaper]]:
    """A temporary folder that goes away with its process, together with all groups given to the reaper."""
    reaper = Reaper()
    try:
        path = Path(tempfile.mkdtemp(prefix=f"placet-{name}-"))
        reaper.folder(path)
        yield path, reaper
    finally:
        reaper.close()


def run_once(command: Sequence[str | Path], *, reaper: Reaper, log: Path, owner: tuple[int, int] | None = None) -> None:
    """Run a program to its end; its failure is ours."""
    process = _start(command, reaper, log, owner)
    if process.wait():
        raise ServerError(f"{Path(command[0]).name} failed:\n{_last_words(log)}")
    reaper.forget_group(process.pid)


@contextmanager
def running(
    command: Sequence[str | Path],
    *,
    reaper: Reaper,
    log: Path,
    is_ready: Callable[[], bool],
    owner: tuple[int, int] | None = None,
    patience: float = 30.0,
) -> Iterator[None]:
    """The server, answering; ended on the way out. `owner` is the uid and gid it runs as, where that is not ours."""
    process = _start(command, reaper, log, owner)
    try:
        deadline = time.monotonic() + patience
        while not is_ready():
            if process.poll() is not None or time.monotonic() > deadline:
                raise ServerError(f"{Path(command[0]).name} did not start:\n{_last_words(log)}")
            time.sleep(0.02)
        yield
    finally:
        # Interrupted, PostgreSQL does not wait for its clients to leave.
        end_groups([process.pid], ask=signal.SIGINT, poll=process.poll)
        process.wait()
        reaper.forget_group(process.pid)


def _start(
    command: Sequence[str | Path], reaper: Reaper, log: Path, owner: tuple[int, int] | None
) -> subprocess.Popen[bytes]:
    uid, gid = owner if owner else (None, None)
    with log.open("wb") as output:
        process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            cwd=log.parent,
            user=uid,
            group=gid,
            extra_groups=[] if owner else None,
            start_new_session=True,
        )
    reaper.group(process.pid)
    return process


def _last_words(log: Path) -> str:
    return log.read_text(errors="replace")[-2000:]
