"""Landlock: the files that a process and its children can reach from now on, for good; all others are refused."""

import contextlib
import ctypes
import os
import struct
from collections.abc import Iterable, Iterator

_CREATE, _ADD, _RESTRICT = 444, 445, 446  # the same on every machine
_VERSION, _BENEATH = 1, 1
_PR_SET_NO_NEW_PRIVS = 38

_EXECUTE, _WRITE, _READ, _LIST = 1 << 0, 1 << 1, 1 << 2, 1 << 3
_CHANGES = sum(1 << bit for bit in range(4, 13))  # remove and make entries of any kind
_MOVE, _CUT = 1 << 13, 1 << 14  # of the second and the third version
_OF_FILES = _EXECUTE | _WRITE | _READ | _CUT
_STRANGERS = 0b11  # of the sixth version: abstract sockets of, and signals to, processes that are not within

READING = _EXECUTE | _READ | _LIST
WRITING = _WRITE | _CHANGES | _MOVE | _CUT
LISTING = _LIST


def version() -> int:
    """Which one the kernel has; 0 if none."""
    known: int = _libc().syscall(_CREATE, None, ctypes.c_size_t(0), ctypes.c_uint32(_VERSION))
    return max(0, known)


def restrict(rules: Iterable[tuple[str, int]]) -> None:
    """Leaves only what lies at or beneath these paths, in these ways; OSError where the kernel cannot."""
    known = version()
    if not known:
        raise OSError("the kernel has no Landlock")
    handled = READING | _WRITE | _CHANGES | (_MOVE if known >= 2 else 0) | (_CUT if known >= 3 else 0)
    wanted = struct.pack("=QQQ", handled, 0, _STRANGERS if known >= 6 else 0)[: 24 if known >= 6 else 8]
    ruleset = _ask(_CREATE, wanted, ctypes.c_size_t(len(wanted)), ctypes.c_uint32(0))
    try:
        for path, ways in rules:
            _allow(ruleset, path, ways & handled)
        if _libc().prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0):
            raise OSError(ctypes.get_errno(), "the kernel cannot refuse new privileges")
        _ask(_RESTRICT, ruleset, ctypes.c_uint32(0))
    finally:
        os.close(ruleset)


def around(hidden: Iterable[str]) -> Iterator[str]:
    """The largest folders and files that together hold everything but these.

    A link is no place of its own: what counts is where it leads to.
    """
    ways = {os.path.realpath(path) for path in hidden}
    folders = ["/"]
    while folders:
        folder = folders.pop()
        with contextlib.suppress(OSError), os.scandir(folder) as entries:
            for entry in entries:
                if entry.path in ways or entry.is_symlink():
                    continue
                if any(way.startswith(f"{entry.path}/") for way in ways):
                    folders.append(entry.path)
                else:
                    yield entry.path


def _allow(ruleset: int, path: str, ways: int) -> None:
    """Of what is not there, nothing has to be allowed."""
    with contextlib.suppress(FileNotFoundError, PermissionError, NotADirectoryError):
        place = os.open(path, os.O_PATH | os.O_CLOEXEC)
        try:
            ways = ways if os.path.isdir(path) else ways & _OF_FILES
            if ways:
                _ask(_ADD, ruleset, ctypes.c_uint32(_BENEATH), struct.pack("=Qi", ways, place), ctypes.c_uint32(0))
        finally:
            os.close(place)


def _ask(*words: object) -> int:
    answer: int = _libc().syscall(*words)
    if answer < 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
    return answer


def _libc() -> ctypes.CDLL:
    return ctypes.CDLL(None, use_errno=True)
