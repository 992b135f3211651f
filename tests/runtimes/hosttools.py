"""Tools that misbehave in a host, and ways to look at processes."""

import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]
SOON = 0.25  # seconds; the promise is 0.05, but a test may share its processor with others
TOOLS = """
import ctypes, os, pathlib, re, signal, subprocess, sys, threading, time
from placet import ToolContext, ToolError

here = pathlib.Path(os.environ["HOME"])

def add(a: int, b: int) -> int:
    return a + b

def pid() -> int:
    return os.getpid()

def surroundings() -> dict:
    return {"env": dict(os.environ), "modules": sorted(sys.modules)}

def nap(seconds: float) -> int:
    time.sleep(seconds)
    return os.getpid()

def stuck_in_c():
    re.fullmatch("(a+)+b", "a" * 60)  # holds the interpreter lock for years

def deaf():
    for number in range(1, 65):
        try:
            signal.signal(number, signal.SIG_IGN)
        except (OSError, ValueError):
            pass
    while True:
        try:
            time.sleep(60)
        except BaseException:
            pass

def family(file: str):
    subprocess.Popen(["sleep", "60"])
    subprocess.Popen(["setsid", "sleep", "60"])
    child = subprocess.Popen([sys.executable, "-c", "import os, time\\nif not os.fork(): os.setsid(); time.sleep(60)"])
    child.wait()
    time.sleep(0.3)
    children = pathlib.Path(f"/proc/{os.getpid()}/task/{os.getpid()}/children").read_text()
    pathlib.Path(file + ".new").write_text(children)
    os.rename(file + ".new", file)
    time.sleep(60)

def leave(code: int):
    os._exit(code)

def fault():
    ctypes.string_at(0)

def big(size: int) -> str:
    return "x" * size

def raw(size: int):
    fd = max(int(n) for n in os.listdir("/proc/self/fd") if os.path.exists(f"/proc/self/fd/{n}"))
    os.write(fd, size.to_bytes(4, "big") + b"x" * 1000)
    time.sleep(60)

def flood():
    frame = b'{"kind":"log","level":"info","message":"' + b"x" * 1000 + b'"}'
    fd = max(int(n) for n in os.listdir("/proc/self/fd") if os.path.exists(f"/proc/self/fd/{n}"))
    while True:
        os.write(fd, len(frame).to_bytes(4, "big") + frame)

def drip():
    fd = max(int(n) for n in os.listdir("/proc/self/fd") if os.path.exists(f"/proc/self/fd/{n}"))
    while True:
        os.write(fd, b'\\x00\\x00\\x00\\x0e{"kind":"log"}')
        time.sleep(0.001)

def nonsense():
    fd = max(int(n) for n in os.listdir("/proc/self/fd") if os.path.exists(f"/proc/self/fd/{n}"))
    os.write(fd, b'\\x00\\x00\\x00\\x03{]}')
    time.sleep(60)

def news(context: ToolContext) -> int:
    context.progress(1, 2, "half")
    print("hello")
    return 1

def thread() -> int:
    threading.Thread(target=time.sleep, args=(60,), daemon=True).start()
    return os.getpid()

def mark(file: str):
    pathlib.Path(file).touch()
    time.sleep(60)

def litter() -> str:
    (here / "litter").write_text("x")
    return str(here)
"""


def request(function: str, **arguments: Any) -> dict[str, Any]:
    return {"entrypoint": f"tools:{function}", "arguments": arguments}


def is_alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] not in ("Z", "X")
    except (FileNotFoundError, ProcessLookupError):
        return False


def assert_dead_soon(*pids: int) -> None:
    for _ in range(200):
        if not any(is_alive(pid) for pid in pids):
            return
        time.sleep(0.01)
    pytest.fail(f"still alive: {[pid for pid in pids if is_alive(pid)]}")


def run_apart(script: str) -> subprocess.CompletedProcess[str]:
    """Runs a script in a process of its own that has the pool at hand."""
    head = (
        "import os, django\nfrom pathlib import Path\ndjango.setup()\nfrom execution.runtimes.hosts import HostPool\n"
    )
    return subprocess.run(
        [sys.executable, "-W", "error::ResourceWarning", "-c", head + script],
        env={**os.environ, "PYTHONPATH": f"{ROOT}:{os.environ.get('PYTHONPATH', '')}"},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
