"""The mark of a process on what it starts, by which others can tell whether it still lives."""

import os
from pathlib import Path

_PROC = Path("/proc")


def mark(pid: int | None = None) -> str:
    """Which boot, which world of process numbers, which number, and since when: never given twice."""
    number = os.getpid() if pid is None else pid
    return f"{_world()}.{number}.{_started(number)}"


def is_gone(of: str) -> bool:
    """Whether the process with this mark has ended; a mark of another machine or boot is none of our business."""
    world, _, rest = of.rpartition(".")[0].rpartition(".")
    return world == _world() and rest.isdecimal() and mark(int(rest)) != of


def _world() -> str:
    boot = (_PROC / "sys/kernel/random/boot_id").read_text().strip()
    return f"{boot}.{os.stat(_PROC / 'self/ns/pid').st_ino}"


def _started(pid: int) -> str:
    """When the kernel says a process began; nothing if there is none. Its name may hold any character."""
    try:
        return (_PROC / str(pid) / "stat").read_text().rpartition(")")[2].split()[19]
    except (OSError, IndexError):
        return "none"
