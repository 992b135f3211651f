"""Limits: how much a tool's process may use and leave behind, and that it does not outlive who started it."""

import contextlib
import ctypes
import os
import resource
import signal
import sys

MAX_FILES = 512
MAX_FILE_SIZE = 256 * 1024 * 1024

# What a host has that runs a tool of high or critical risk, one call long.
CONFINED_FILES = 128
CONFINED_FILE_SIZE = 64 * 1024 * 1024
CONFINED_MEMORY = 512 * 1024 * 1024  # written to, in each process
CONFINED_ADDRESSES = 4 * 1024 * 1024 * 1024  # set aside, which threads and libraries do by the gigabyte
CONFINED_TASKS = 64  # processes and threads, beside those its user already has; the kernel does not count for root

_PR_SET_PDEATHSIG, _PR_SET_CHILD_SUBREAPER, _PR_SET_NO_NEW_PRIVS = 1, 36, 38


def secure(fd: int, parent: int) -> None:
    """Ties the host to its parent's life, and bounds what it may leave behind."""
    os.set_inheritable(fd, False)
    if sys.platform == "linux":
        libc = ctypes.CDLL(None, use_errno=True)
        libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
        libc.prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
        if os.getppid() != parent:
            os._exit(0)  # It died before we could ask to be told.
    _limit(
        (resource.RLIMIT_CORE, 0),
        (resource.RLIMIT_NOFILE, MAX_FILES),
        (resource.RLIMIT_FSIZE, MAX_FILE_SIZE),
    )


def confine() -> None:
    """Narrows a secured host for a risky tool, and its children with it; OSError or ValueError if it cannot be."""
    if sys.platform != "linux":
        raise OSError("only Linux can confine a process so")
    if ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0):
        raise OSError(ctypes.get_errno(), "the kernel cannot refuse new privileges")
    _limit(
        (resource.RLIMIT_DATA, CONFINED_MEMORY),
        (resource.RLIMIT_AS, CONFINED_ADDRESSES),
        (resource.RLIMIT_NOFILE, CONFINED_FILES),
        (resource.RLIMIT_FSIZE, CONFINED_FILE_SIZE),
        (resource.RLIMIT_NPROC, _tasks_of_user() + CONFINED_TASKS),
    )


def _limit(*limits: tuple[int, int]) -> None:
    """Sets each for good, or keeps the narrower one that already holds."""
    for limit, value in limits:
        _, hard = resource.getrlimit(limit)
        value = value if hard == resource.RLIM_INFINITY else min(value, hard)
        resource.setrlimit(limit, (value, value))


def _tasks_of_user() -> int:
    """How many processes and threads run under our user: the kernel counts them all against one limit."""
    ours, tasks = os.getuid(), 0
    for entry in os.scandir("/proc"):
        with contextlib.suppress(OSError):
            if entry.name.isdecimal() and entry.stat().st_uid == ours:
                tasks += len(os.listdir(f"/proc/{entry.name}/task"))
    return tasks
