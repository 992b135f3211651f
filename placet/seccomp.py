"""Seccomp: system calls that the kernel refuses a process and its children from now on, for good."""

import ctypes
import errno
import platform
import struct

# What reaches past any other wall: other processes' memory and files, and ways to do things unseen.
_NEVER = (
    "add_key", "bpf", "io_uring_enter", "io_uring_register", "io_uring_setup", "keyctl", "perf_event_open",
    "pidfd_getfd", "process_vm_readv", "process_vm_writev", "ptrace", "request_key", "userfaultfd",
)  # fmt: skip
NETWORK = ("socket",)  # pairs of sockets lead nowhere, and asyncio needs one
COMMANDS = ("execve", "execveat")

_NEW = {"pidfd_getfd": 438, "io_uring_setup": 425, "io_uring_enter": 426, "io_uring_register": 427}
# By machine: its number among the kernel's architectures, and its numbers for the calls above.
_MACHINES: dict[str, tuple[int, dict[str, int]]] = {
    "x86_64": (0xC000003E, {
        "socket": 41, "execve": 59, "ptrace": 101, "add_key": 248, "request_key": 249, "keyctl": 250,
        "perf_event_open": 298, "process_vm_readv": 310, "process_vm_writev": 311, "bpf": 321, "execveat": 322,
        "userfaultfd": 323, **_NEW,
    }),
    "aarch64": (0xC00000B7, {
        "ptrace": 117, "socket": 198, "add_key": 217, "request_key": 218, "keyctl": 219, "execve": 221,
        "perf_event_open": 241, "process_vm_readv": 270, "process_vm_writev": 271, "bpf": 280, "execveat": 281,
        "userfaultfd": 282, **_NEW,
    }),
}  # fmt: skip
_OTHER_TABLE = 0x40000000  # from here on a number of x86_64 means a call of another table, under which it would slip by

_PR_SET_NO_NEW_PRIVS, _PR_SET_SECCOMP, _MODE_FILTER = 38, 22, 2
_LOAD, _IF_EQUAL, _IF_AT_LEAST, _RETURN = 0x20, 0x15, 0x35, 0x06  # instructions of the filter's machine
_ARCHITECTURE_AT, _NUMBER_AT = 4, 0  # in what the kernel shows it
_ALLOW, _KILL, _REFUSE = 0x7FFF0000, 0x80000000, 0x00050000 | errno.EPERM


class _Program(ctypes.Structure):
    _fields_ = (("length", ctypes.c_ushort), ("instructions", ctypes.c_char_p))


def refuse(*calls: str) -> None:
    """Refuses these calls, and those no tool has a use for; OSError where the kernel or the machine cannot."""
    if platform.machine() not in _MACHINES:
        raise OSError(errno.ENOSYS, f"system calls of a {platform.machine()} are not known")
    architecture, numbers = _MACHINES[platform.machine()]
    program = _program(architecture, sorted(numbers[call] for call in {*calls, *_NEVER}))
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0):
        raise OSError(ctypes.get_errno(), "the kernel cannot refuse new privileges")
    given = _Program(len(program) // 8, program)
    if libc.prctl(_PR_SET_SECCOMP, _MODE_FILTER, ctypes.byref(given), 0, 0):
        raise OSError(ctypes.get_errno(), "the kernel takes no filter of system calls")


def _program(architecture: int, refused: list[int]) -> bytes:
    """Kills what speaks another architecture's numbers, refuses the listed ones, and allows the rest."""
    lines = [
        (_LOAD, 0, 0, _ARCHITECTURE_AT),
        (_IF_EQUAL, 1, 0, architecture),
        (_RETURN, 0, 0, _KILL),
        (_LOAD, 0, 0, _NUMBER_AT),
        (_IF_AT_LEAST, len(refused) + 1, 0, _OTHER_TABLE),
    ]
    lines += [(_IF_EQUAL, len(refused) - place, 0, number) for place, number in enumerate(refused)]
    lines += [(_RETURN, 0, 0, _ALLOW), (_RETURN, 0, 0, _REFUSE)]
    return b"".join(struct.pack("=HBBI", *line) for line in lines)
