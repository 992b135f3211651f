"""The two servers under measurement: the product as `make run` starts it, and the bare view."""

from __future__ import annotations

import http.client
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench.client import Question, post
from config.address import Address
from config.reaper import Reaper, end_groups
from config.serve import SPARING, programs
from config.settings.base import PLACET_WEB_THREADS
from tests.services.server import free_port

ROOT = Path(__file__).resolve().parents[1]
READY_WITHIN = 90.0
# Every sum has four digits, so that no right answer hides in a wrong one.
NUMBERS = [(1000 + 7 * n, 2000 + 11 * n) for n in range(100)]
OURS = ("PLACET_", "CELERY_", "DATABASE_", "DJANGO_")  # what steers the product; only what we say counts here


class CannotMeasure(Exception):
    """Why there is nothing to measure; holds the last words of the server that failed."""


@dataclass(frozen=True, slots=True)
class Server:
    """A running server, and the questions that it is asked."""

    pid: int
    port: int
    questions: list[Question]


@dataclass(frozen=True, slots=True)
class Home:
    """One installation of the product: its folder, its port and the environment that all its commands share."""

    folder: Path
    port: int
    environment: Mapping[str, str]

    @classmethod
    def make(cls, parent: Path, name: str, **more: str) -> Home:
        folder, port = Path(tempfile.mkdtemp(prefix=f"{name}-", dir=parent)), free_port()
        kept = {name: value for name, value in os.environ.items() if not name.startswith(OURS)}
        own = {"PLACET_HOME": str(folder), "HOST": "127.0.0.1", "PORT": str(port)}
        settings = {"DJANGO_SETTINGS_MODULE": "config.settings.local", "PYTHONPATH": str(ROOT)}
        return cls(folder, port, kept | own | settings | more)

    def run(self, *command: str) -> str:
        """One of the product's own commands, to its end; its failure is ours."""
        done = subprocess.run(
            [sys.executable, *command], cwd=ROOT, env=dict(self.environment), capture_output=True, text=True
        )
        if done.returncode:
            raise CannotMeasure(f"{' '.join(command)} failed:\n{(done.stdout + done.stderr)[-3000:]}")
        return done.stdout

    def prepare(self) -> None:
        """Tables and demo data, as at the first start."""
        self.run("-m", "config.prepare", f"http://127.0.0.1:{self.port}")

    def key(self) -> str:
        demo: dict[str, Any] = json.loads((self.folder / "demo.json").read_text())
        return str(demo["agents"][0]["key"])


@contextmanager
def product(home: Home, reaper: Reaper, *, is_inline: bool) -> Iterator[Server]:
    """The product with its worker, ready for calls."""
    environment = {**home.environment, "PLACET_INLINE": "1" if is_inline else "0"}
    command = [sys.executable, "-m", "config.serve"]
    with _running(command, environment, home.folder, home.port, "/health", reaper) as pid:
        headers = {"OXP-API-Key": home.key()}
        yield Server(pid, home.port, [_call(home.port, a, b, headers) for a, b in NUMBERS])


@contextmanager
def bare(folder: Path, reaper: Reaper) -> Iterator[Server]:
    """The bare view, on the same server with the same settings as the product's web process."""
    port = free_port()
    web = programs(folder, Address("127.0.0.1", port), {}, PLACET_WEB_THREADS)[0]
    command = ["bench.bare:application" if word == "config.wsgi:application" else word for word in web.command]
    with _running(command, SPARING | dict(os.environ), folder, port, "/", reaper) as pid:
        yield Server(pid, port, [_sum(port, a, b) for a, b in NUMBERS])


def _call(port: int, a: int, b: int, headers: dict[str, str]) -> Question:
    body = {"request": {"tool_id": "Calculator.Add", "input": {"a": a, "b": b}}}
    sent = post(port, "/tools/call", json.dumps(body).encode(), headers)
    return Question(sent, b'"success":true,', b'"value":%d' % (a + b))


def _sum(port: int, a: int, b: int) -> Question:
    return Question(post(port, "/add", json.dumps({"a": a, "b": b}).encode()), b'"sum"', b": %d}" % (a + b))


@contextmanager
def _running(
    command: list[str], environment: Mapping[str, str], folder: Path, port: int, path: str, reaper: Reaper
) -> Iterator[int]:
    log = folder / "server.log"
    with log.open("ab") as output:
        process = subprocess.Popen(
            command,
            cwd=ROOT,
            env=dict(environment),
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            start_new_session=True,
        )
    reaper.group(process.pid)
    try:
        deadline = time.monotonic() + READY_WITHIN
        while not _answers(port, path):
            if process.poll() is not None or time.monotonic() > deadline:
                raise CannotMeasure(f"{' '.join(command)} did not start:\n{log.read_text(errors='replace')[-3000:]}")
            time.sleep(0.05)
        yield process.pid
    finally:
        end_groups([process.pid], patience=30.0, poll=process.poll)
        process.wait()
        reaper.forget_group(process.pid)


def _answers(port: int, path: str) -> bool:
    """Whether the server answers at all sensibly: a page that is not there counts, a server in trouble does not."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=2)
    try:
        connection.request("GET", path)
        return connection.getresponse().status < 500
    except (OSError, http.client.HTTPException):
        return False
    finally:
        connection.close()
