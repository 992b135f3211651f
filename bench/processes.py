"""What process trees use: memory as the kernel shares it out, and processor time."""

from __future__ import annotations

import contextlib
import os
from dataclasses import dataclass
from pathlib import Path

_TICKS = os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True, slots=True)
class Memory:
    """Megabytes of one process tree. PSS shares out what several processes map; RSS counts it once for each of them."""

    pss: float
    rss: float
    processes: int


def tree(pid: int) -> list[int]:
    """A process and all below it."""
    parents: dict[int, list[int]] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            with contextlib.suppress(OSError):
                parents.setdefault(int(_stat(int(entry.name))[1]), []).append(int(entry.name))
    found = [pid]
    for each in found:
        found += parents.get(each, [])
    return found


def children(pid: int) -> list[int]:
    """The processes directly below one."""
    return [each for each in tree(pid) if each != pid and int(_stat(each)[1]) == pid]


def named(pid: int) -> str:
    return Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")


def memory(pids: list[int]) -> Memory:
    pss = rss = 0
    for pid in pids:
        with contextlib.suppress(OSError):
            for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
                name, _, rest = line.partition(":")
                if name == "Pss":
                    pss += int(rest.split()[0])
                elif name == "Rss":
                    rss += int(rest.split()[0])
    return Memory(round(pss / 1024, 1), round(rss / 1024, 1), len(pids))


def cpu_seconds(pids: list[int]) -> float:
    """Processor time that these processes have used so far."""
    used = 0
    for pid in pids:
        with contextlib.suppress(OSError):
            fields = _stat(pid)
            used += int(fields[11]) + int(fields[12])
    return used / _TICKS


def _stat(pid: int) -> list[str]:
    """The fields after the name, which may hold anything: state, parent, …"""
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
