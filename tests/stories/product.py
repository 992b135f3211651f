"""The product as a newcomer starts it: a process, a home of its own, a port, and what it prints."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping
from pathlib import Path

from tests.services.server import free_port

ROOT = Path(__file__).resolve().parents[2]
READY = "Placet is ready"
END_OF_GREETING = "Stop with Ctrl-C."


class Product:
    """`python -m config.serve` in a home, with everything it has printed so far."""

    def __init__(self, home: Path, port: int | None = None, environment: Mapping[str, str] | None = None) -> None:
        self.home = home
        self.port = port or free_port()
        self.lines: list[str] = []
        inherited = {name: value for name, value in os.environ.items() if name != "DJANGO_SETTINGS_MODULE"}
        self.process = subprocess.Popen(
            [sys.executable, "-m", "config.serve"],
            cwd=ROOT,
            env=inherited
            | {"PLACET_HOME": str(home), "PORT": str(self.port), "HOST": "127.0.0.1"}
            | dict(environment or {}),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    @property
    def output(self) -> str:
        return "\n".join(self.lines)

    def wait_for(self, text: str, seconds: float = 60) -> None:
        """Until a line holds `text`; whatever was printed instead is the failure's message."""
        wait_until(lambda: text in self.output or self.process.poll() is not None, seconds)
        self._reader.join(timeout=0 if self.process.poll() is None else 5)
        assert text in self.output, self.output

    def ready(self) -> Product:
        self.wait_for(END_OF_GREETING)
        return self

    def command(self) -> str:
        """The call to copy, exactly as printed."""
        return self.output.partition("A first call:\n\n")[2].partition("\n\n")[0]

    def finish(self, number: int = signal.SIGTERM) -> int:
        """Send a signal and wait for the end; the exit code."""
        self.process.send_signal(number)
        try:
            code = self.process.wait(timeout=30)
        except subprocess.TimeoutExpired:
            raise AssertionError(f"it does not end: {self.processes()}\n{self.output[-4000:]}") from None
        self._reader.join(timeout=5)
        return code

    def processes(self) -> dict[int, str]:
        """Every process of this home that still runs, with its command line."""
        return processes_in(self.home)

    def _read(self) -> None:
        assert self.process.stdout is not None
        with self.process.stdout as output:
            for line in output:
                self.lines.append(line.rstrip("\n"))


def wait_until(holds: Callable[[], bool], seconds: float = 20) -> bool:
    """Poll a condition; whether it came true in time."""
    deadline = time.monotonic() + seconds
    while not (is_true := holds()) and time.monotonic() < deadline:
        time.sleep(0.05)
    return is_true


def processes_in(home: Path) -> dict[int, str]:
    """Every living process whose environment names this home."""
    mark = f"PLACET_HOME={home}".encode()
    found = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and int(entry.name) != os.getpid():
            try:
                if mark in (entry / "environ").read_bytes().split(b"\0"):
                    found[int(entry.name)] = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode()
            except OSError:
                continue
    return found
