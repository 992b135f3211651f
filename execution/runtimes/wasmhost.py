"""python -I wasmhost.py MODULE ENTRYPOINT FUEL MEMORY SECONDS PARENT: one run of one WebAssembly module, then the end.

The module gets this process's standard streams and nothing else: no files, no network, no arguments, no environment.
The exit status is the Verdict. Nothing of Placet is imported here, so there is nothing of Placet to reach.
"""

import os
import signal
import sys
from enum import IntEnum
from typing import Any

MAX_MODULE = 10_000_000
MAX_TABLE = 100_000  # elements in each of at most four tables
MAX_TABLES = 4
PAGE = 65536
_ROOM = 1 << 30  # address space for the interpreter and the compiler, beside the module's memory
_MAX_FILE = 256 << 20  # the engine keeps what a module's memory begins with in a file without a name
_MAGIC = b"\0asm\1\0\0\0"
_PR_SET_PDEATHSIG, _PR_SET_NO_NEW_PRIVS = 1, 38


class Verdict(IntEnum):
    """How a run ended, as an exit status; what is to be said about it is the last line of standard error."""

    DONE = 0
    TRAPPED = 70
    EXITED = 71
    OUT_OF_FUEL = 72
    OUT_OF_MEMORY = 73
    TOO_LARGE = 74
    BAD_MODULE = 75
    NO_ENTRYPOINT = 76
    NO_ENGINE = 77
    NO_WALLS = 78


def main(module: str, entrypoint: str, fuel: int, memory: int, seconds: float, parent: int) -> tuple[Verdict, str]:
    try:
        _wall_in(memory, parent)
    except (OSError, ValueError) as error:
        return Verdict.NO_WALLS, f"the limits could not be set: {error}"
    try:
        import wasmtime
    except (ImportError, OSError) as error:
        return Verdict.NO_ENGINE, f"wasmtime cannot be used: {error}"
    # From here on the time is the module's, compiling included. The kernel keeps it, whatever the module does.
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        with open(module, "rb") as file:
            code = file.read(MAX_MODULE + 1)
    except OSError as error:
        return Verdict.BAD_MODULE, f"the module cannot be read: {error.strerror}"
    if len(code) > MAX_MODULE:
        return Verdict.TOO_LARGE, f"the module is larger than {MAX_MODULE} bytes"
    if not code.startswith(_MAGIC):
        return Verdict.BAD_MODULE, "the file is no WebAssembly module, version 1"
    return _run(wasmtime, code, entrypoint, fuel, memory)


def _run(wasmtime: Any, code: bytes, entrypoint: str, fuel: int, memory: int) -> tuple[Verdict, str]:
    engine = wasmtime.Engine(_config(wasmtime))
    try:
        compiled = wasmtime.Module(engine, code)
    except wasmtime.WasmtimeError as error:
        return Verdict.BAD_MODULE, str(error)
    store = wasmtime.Store(engine)
    store.set_limits(memory_size=memory, table_elements=MAX_TABLE, instances=1, tables=MAX_TABLES, memories=1)
    store.set_fuel(fuel)
    wasi = wasmtime.WasiConfig()
    wasi.inherit_stdin()
    wasi.inherit_stdout()
    wasi.inherit_stderr()
    store.set_wasi(wasi)
    linker = wasmtime.Linker(engine)
    linker.define_wasi()
    instance = None
    try:
        instance = linker.instantiate(store, compiled)
        function = instance.exports(store).get(entrypoint)
        if not isinstance(function, wasmtime.Func) or function.type(store).params or function.type(store).results:
            return (
                Verdict.NO_ENTRYPOINT,
                f"the module exports no function {entrypoint!r} without parameters and results",
            )
        function(store)
    except wasmtime.ExitTrap as end:
        return (Verdict.DONE, "") if end.code == 0 else (Verdict.EXITED, f"the module ended with {end.code}")
    except wasmtime.Trap as trap:
        if trap.trap_code == wasmtime.TrapCode.OUT_OF_FUEL:
            return Verdict.OUT_OF_FUEL, "the module used up its fuel"
        if instance is not None and _is_full(wasmtime, store, instance, memory):
            return Verdict.OUT_OF_MEMORY, f"the module used up its memory: {_first_line(trap)}"
        return Verdict.TRAPPED, _first_line(trap)
    except wasmtime.WasmtimeError as error:
        if instance is not None:
            return Verdict.TRAPPED, str(error)  # something it asked for makes no sense
        # The library has no type for a limit that instantiation ran into, only this sentence.
        is_limit = "exceeds memory limits" in str(error) or "exceeds table limits" in str(error)
        return (Verdict.OUT_OF_MEMORY if is_limit else Verdict.BAD_MODULE), str(error)
    return Verdict.DONE, ""


def _config(wasmtime: Any) -> Any:
    """What modules may use: the core language that compilers emit today, on one thread, counted by fuel."""
    config = wasmtime.Config()
    config.consume_fuel = True
    config.parallel_compilation = False  # One call has one core.
    config.wasm_threads = False
    config.wasm_memory64 = False
    config.wasm_multi_memory = False
    config.wasm_gc = False
    config.wasm_exceptions = False
    # Reserve what is used: by default each memory takes gigabytes of address space, which we limit.
    config.memory_reservation = 0
    config.memory_guard_size = PAGE
    config.memory_reservation_for_growth = 0
    return config


def _is_full(wasmtime: Any, store: Any, instance: Any, limit: int) -> bool:
    """Whether the memory came so near its limit that growth must have been refused: growing usually means doubling."""
    memory = instance.exports(store).get("memory")
    return isinstance(memory, wasmtime.Memory) and memory.data_len(store) > limit // 2


def _first_line(error: BaseException) -> str:
    """What happened, in one line; where in the module it happened stands above it for its author."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return lines[-1] if lines else type(error).__name__


def _wall_in(memory: int, parent: int) -> None:
    """Ties the process to its parent's life and takes from it what no module needs: files, cores, new rights."""
    import ctypes
    import resource

    libc = ctypes.CDLL(None, use_errno=True)
    for option, value in ((_PR_SET_PDEATHSIG, signal.SIGKILL), (_PR_SET_NO_NEW_PRIVS, 1)):
        if libc.prctl(option, int(value), 0, 0, 0):
            raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    if os.getppid() != parent:
        os._exit(Verdict.NO_WALLS)  # It died before we could ask to be told.
    for limit, value in (
        (resource.RLIMIT_CORE, 0),
        (resource.RLIMIT_FSIZE, _MAX_FILE),
        (resource.RLIMIT_NOFILE, 64),
        (resource.RLIMIT_AS, _ROOM + memory),
    ):
        _, hard = resource.getrlimit(limit)
        value = value if hard == resource.RLIM_INFINITY else min(value, hard)
        resource.setrlimit(limit, (value, value))


if __name__ == "__main__":
    path, name, fuel, memory, seconds, parent = sys.argv[1:]
    verdict, words = main(path, name, int(fuel), int(memory), float(seconds), int(parent))
    if words:
        os.write(2, b"\n" + " ".join(words.split()).encode(errors="replace")[:4000])
    os._exit(verdict)
