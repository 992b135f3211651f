"""Walls: a tool's process reaches what the tool declared, and the kernel refuses it the rest.

Its own folder, its own home and what Python itself needs are always within.
"""

import os
import sys
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from placet import landlock, seccomp
from placet.child import ROOT

# By opening, the capabilities that ask for it.
OPENINGS = {
    "network": ("network.read", "network.write", "external.side_effect"),
    "commands": ("exec.command",),
    "reading": ("filesystem.read",),
    "writing": ("filesystem.write",),
}
NAMES = {"network": "the network", "commands": "other programs", "reading": "other files", "writing": "changing files"}

_SYSTEM = ("/usr", "/lib", "/lib32", "/lib64", "/bin", "/sbin", "/proc/self", "/proc/cpuinfo", "/proc/meminfo")
_SETTINGS = (
    "ca-certificates", "gai.conf", "host.conf", "hosts", "ld.so.cache", "localtime", "mime.types", "nsswitch.conf",
    "protocols", "resolv.conf", "services", "ssl", "timezone",
)  # fmt: skip
_DEVICES = ("/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom")


def openings(capabilities: Iterable[str]) -> tuple[str, ...]:
    """What stays open to a tool with these capabilities."""
    declared = set(capabilities)
    return tuple(name for name, wanted in OPENINGS.items() if not declared.isdisjoint(wanted))


class Mine(NamedTuple):
    """What belongs to a tool's process: its source, a home for as long as it lives, a folder that outlives it."""

    folder: str
    home: str
    kept: str = ""


def raise_around(mine: Mine, opened: Iterable[str], hidden: Iterable[str]) -> list[str]:
    """Closes what is not opened, and what is hidden in any case; says why, for each wall the kernel does not have."""
    refused = [] if "network" in opened else [*seccomp.NETWORK]
    refused += [] if "commands" in opened else seccomp.COMMANDS
    missing = []
    try:
        landlock.restrict(_rules(mine, set(opened), [*hidden]))
    except OSError as error:
        missing.append(str(error))
    try:
        seccomp.refuse(*refused)
    except OSError as error:
        missing.append(str(error))
    return missing


def closed(opened: Iterable[str]) -> str:
    """For the developer of a tool that ran into a wall: which there are."""
    names = [name for opening, name in NAMES.items() if opening not in set(opened)]
    if not names:
        return ""
    wanted = ", ".join(OPENINGS[opening][0] for opening in OPENINGS if opening not in set(opened))
    return f"closed to this tool: {', '.join(names)}; it would have to declare {wanted}"


def _rules(mine: Mine, opened: set[str], hidden: list[str]) -> Iterator[tuple[str, int]]:
    yield mine.home, landlock.READING | landlock.WRITING
    yield mine.folder, landlock.READING
    if mine.kept:
        yield mine.kept, landlock.READING | (landlock.WRITING if "writing" in opened else 0)
    for device in _DEVICES:
        yield device, landlock.READING | landlock.WRITING
    for place in {*_SYSTEM, *(f"/etc/{name}" for name in _SETTINGS), *_python()}:
        yield place, landlock.READING
    ways = (landlock.READING if "reading" in opened else 0) | (landlock.WRITING if "writing" in opened else 0)
    if ways:
        for place in landlock.around([*hidden, "/proc"]):  # other processes are none of its files
            yield place, ways
    if "reading" in opened:
        yield "/", landlock.LISTING


def _python() -> Iterator[str]:
    """Where the interpreter, its libraries and this package are; never the folder of the product they may lie in."""
    yield os.path.join(ROOT, "placet")
    for place in (sys.prefix, sys.base_prefix, sys.exec_prefix, *sys.path):
        if place and not ROOT.startswith(os.path.join(os.path.realpath(place), "")) and place != ROOT:
            yield place
