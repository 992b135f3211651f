"""Keep a few child processes alive, join their output into one log, and leave none behind."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from config.reaper import Reaper, end_groups
from config.stop import Stop

QUICK = 10.0  # a process that lived less than these seconds died quickly
MAX_QUICK_DEATHS = 5
PAUSE = 0.5  # seconds before the first restart; doubled each time
LAST_LINES = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Program:
    """What to run, and the name its lines carry in the log."""

    name: str
    command: Sequence[str]
    environment: Mapping[str, str]
    folder: Path
    noise: Sequence[str] = ()  # lines that hold one of these tell nobody anything


class Child:
    """One program as it runs now, and how often it died young."""

    def __init__(self, program: Program, reaper: Reaper, width: int) -> None:
        self.program = program
        self.quick_deaths = 0
        self.last_lines: deque[str] = deque(maxlen=LAST_LINES)
        self.due: float | None = None  # when to start it again, while it is down
        self._reaper = reaper
        self._label = f"{program.name:<{width}} | "
        self.start()

    def start(self) -> None:
        self.due = None
        self._started = time.monotonic()
        self.process = subprocess.Popen(
            self.program.command,
            cwd=self.program.folder,
            env=dict(self.program.environment),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        self._reaper.group(self.process.pid)
        assert self.process.stdout is not None
        self._reader = threading.Thread(target=self._relay, args=(self.process.stdout,), daemon=True)
        self._reader.start()

    def bury(self) -> str:
        """It died: end what it left behind, note whether it was quick, and say how it went."""
        end_groups([self.process.pid], patience=2.0)
        self._reaper.forget_group(self.process.pid)
        self._reader.join(timeout=1.0)
        code = self.process.returncode
        self.quick_deaths = self.quick_deaths + 1 if time.monotonic() - self._started < QUICK else 1
        self.due = time.monotonic() + PAUSE * 2 ** (self.quick_deaths - 1)
        return f"was killed by signal {-code}" if code < 0 else f"ended with code {code}"

    def _relay(self, output: IO[bytes]) -> None:
        with output:
            for raw in output:
                line = visible(raw.decode(errors="replace").rstrip())
                if line and not any(noise in line for noise in self.program.noise):
                    self.last_lines.append(line)
                    say(self._label + line)


class Supervisor:
    """Starts every program, restarts what dies, and gives up on what keeps dying."""

    def __init__(self, programs: Sequence[Program], reaper: Reaper) -> None:
        width = max(len(program.name) for program in programs)
        self._reaper = reaper
        self._children = [Child(program, reaper, width) for program in programs]

    def run(self, stop: Stop, on_tick: Callable[[], bool]) -> bool:
        """Watch until asked to stop (True), or until a child or `on_tick` gives up (False)."""
        while not stop.wait(0.1):
            if not on_tick():
                return False
            for child in self._children:
                if child.due is not None and time.monotonic() >= child.due:
                    child.start()
                elif child.due is None and child.process.poll() is not None and not self._recover(child):
                    return False
        return True

    def stop(self) -> None:
        """Ask every child to finish, wait, insist."""
        running = [child for child in self._children if child.due is None]

        def collect() -> None:
            for child in running:
                child.process.poll()

        end_groups([child.process.pid for child in running], poll=collect)
        for child in running:
            child.process.wait()
            self._reaper.forget_group(child.process.pid)

    def _recover(self, child: Child) -> bool:
        name, how = child.program.name, child.bury()
        if child.quick_deaths >= MAX_QUICK_DEATHS:
            say(f"{name} {how}, {child.quick_deaths} times in a row: giving up. Its last lines were:")
            for line in child.last_lines:
                say(f"    {line}")
            return False
        assert child.due is not None
        say(f"{name} {how}; starting it again in {child.due - time.monotonic():.1f} s")
        return True


def say(line: str = "") -> None:
    """One whole line at once, so that lines of several threads never mix; a closed terminal is no reason to stop."""
    with contextlib.suppress(OSError):
        os.write(sys.stdout.fileno(), f"{line}\n".encode())


def visible(line: str) -> str:
    """Control characters shown, not obeyed: a child's output must not steer the terminal."""
    if line.isprintable():
        return line
    return "".join(c if c.isprintable() or c == "\t" else f"\\x{ord(c):02x}" for c in line)
