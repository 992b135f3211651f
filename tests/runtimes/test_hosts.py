"""The pool answers in time whatever a tool does, and nothing of an ended call is left behind."""

import os
import signal
import statistics
import subprocess
import sys
import textwrap
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from execution.runtimes.hosts import (
    AnswerTooLarge,
    Cancel,
    HostBusy,
    HostCancelled,
    HostCrashed,
    HostError,
    HostPool,
    HostTimeout,
)

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


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    folder = tmp_path / "toolkit"
    folder.mkdir()
    (folder / "tools.py").write_text(TOOLS)
    return folder


@pytest.fixture
def make_pool(tmp_path: Path) -> Iterator[Callable[..., HostPool]]:
    pools: list[HostPool] = []

    def make(**options: Any) -> HostPool:
        pools.append(HostPool(homes=tmp_path, **options))
        return pools[-1]

    yield make
    for pool in pools:
        pool.close()
    assert not list(tmp_path.glob("placet-hosts-*"))


@pytest.fixture
def pool(make_pool: Callable[..., HostPool]) -> HostPool:
    return make_pool()


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


def test_a_call_is_answered_and_the_host_is_used_again(pool: HostPool, folder: Path) -> None:
    assert pool.run(folder=folder, request=request("add", a=1, b=2), timeout=10) == {"kind": "value", "value": 3}
    first, second = (pool.run(folder=folder, request=request("pid"), timeout=10)["value"] for _ in range(2))
    assert first == second != os.getpid()


def test_news_comes_while_the_tool_runs(pool: HostPool, folder: Path) -> None:
    heard: list[dict[str, Any]] = []
    assert pool.run(folder=folder, request=request("news"), timeout=10, on_frame=heard.append)["value"] == 1
    assert heard == [
        {"kind": "progress", "done": 1, "total": 2, "message": "half"},
        {"kind": "log", "level": "info", "message": "hello"},
    ]


@pytest.mark.parametrize("trouble", [ValueError, TimeoutError, EOFError, KeyboardInterrupt])
def test_a_listener_that_fails_is_no_failure_of_the_host(
    pool: HostPool, folder: Path, trouble: type[BaseException]
) -> None:
    def listen(frame: dict[str, Any]) -> None:
        raise trouble

    with pytest.raises(trouble):
        pool.run(folder=folder, request=request("news"), timeout=10, on_frame=listen)
    assert pool.run(folder=folder, request=request("add", a=1, b=2), timeout=10)["value"] == 3


@pytest.mark.parametrize("function", ["stuck_in_c", "deaf", "drip"])
def test_a_tool_that_does_not_end_is_ended_in_time(pool: HostPool, folder: Path, function: str) -> None:
    host = pool.run(folder=folder, request=request("pid"), timeout=10)["value"]
    start = time.monotonic()
    with pytest.raises(HostTimeout) as ended:
        pool.run(folder=folder, request=request(function), timeout=0.3)
    assert 0.3 <= time.monotonic() - start < 0.3 + SOON
    assert ended.value.is_started
    assert_dead_soon(host)
    assert pool.run(folder=folder, request=request("add", a=1, b=2), timeout=10)["value"] == 3


def test_the_children_of_a_tool_end_with_it(pool: HostPool, folder: Path, tmp_path: Path) -> None:
    file = tmp_path / "children"
    with pytest.raises(HostTimeout):
        pool.run(folder=folder, request=request("family", file=str(file)), timeout=2)
    children = [int(pid) for pid in file.read_text().split()]
    assert len(children) == 3  # one in the group, one in a session of its own, one orphan in a third
    assert_dead_soon(*children)


@pytest.mark.parametrize("function", ["stuck_in_c", "deaf", "drip"])
def test_a_cancelled_tool_ends_at_once(pool: HostPool, folder: Path, function: str) -> None:
    host = pool.run(folder=folder, request=request("pid"), timeout=10)["value"]
    cancel, moment = Cancel(), []

    def stop() -> None:
        moment.append(time.monotonic())
        cancel.set()

    timer = threading.Timer(0.3, stop)
    timer.start()
    with pytest.raises(HostCancelled) as ended:
        pool.run(folder=folder, request=request(function), timeout=30, cancel=cancel)
    assert time.monotonic() - moment[0] < SOON
    assert ended.value.is_started
    assert_dead_soon(host)
    timer.join()


def test_a_call_cancelled_beforehand_starts_nothing(pool: HostPool, folder: Path, tmp_path: Path) -> None:
    cancel = Cancel()
    cancel.set()
    with pytest.raises(HostCancelled) as ended:
        pool.run(folder=folder, request=request("mark", file=str(tmp_path / "mark")), timeout=10, cancel=cancel)
    assert not ended.value.is_started
    assert not (tmp_path / "mark").exists()


def test_a_cancel_after_the_answer_harms_no_later_call(pool: HostPool, folder: Path) -> None:
    cancel = Cancel()
    first = pool.run(folder=folder, request=request("pid"), timeout=10, cancel=cancel)["value"]
    cancel.set()
    assert pool.run(folder=folder, request=request("pid"), timeout=10)["value"] == first


@pytest.mark.parametrize(("function", "code"), [("leave", 7), ("fault", -signal.SIGSEGV)])
def test_a_tool_that_takes_its_process_down_is_a_crash_with_its_code(
    pool: HostPool, folder: Path, function: str, code: int
) -> None:
    arguments = {"code": 7} if function == "leave" else {}
    with pytest.raises(HostCrashed) as ended:
        pool.run(folder=folder, request=request(function, **arguments), timeout=10)
    assert ended.value.returncode == code
    assert ended.value.is_started
    assert pool.run(folder=folder, request=request("add", a=1, b=2), timeout=10)["value"] == 3


def test_a_host_that_speaks_nonsense_has_crashed(pool: HostPool, folder: Path) -> None:
    with pytest.raises(HostCrashed):
        pool.run(folder=folder, request=request("nonsense"), timeout=10)


def test_a_host_that_died_while_idle_is_replaced_unnoticed(pool: HostPool, folder: Path) -> None:
    first = pool.run(folder=folder, request=request("pid"), timeout=10)["value"]
    os.kill(first, signal.SIGKILL)
    assert_dead_soon(first)
    assert pool.run(folder=folder, request=request("pid"), timeout=10)["value"] != first


def test_a_host_that_cannot_start_is_a_crash_before_the_tool(pool: HostPool, folder: Path, monkeypatch: Any) -> None:
    monkeypatch.setattr("placet.child.ROOT", "/nowhere")
    with pytest.raises(HostCrashed) as ended:
        pool.run(folder=folder, request=request("pid"), timeout=10)
    assert not ended.value.is_started


def test_a_host_that_is_not_ready_in_time_never_called_the_tool(pool: HostPool, folder: Path, tmp_path: Path) -> None:
    with pytest.raises(HostBusy) as ended:
        pool.run(folder=folder, request=request("mark", file=str(tmp_path / "mark")), timeout=0.001)
    assert not ended.value.is_started
    time.sleep(0.3)
    assert not (tmp_path / "mark").exists()


def test_an_answer_over_the_limit_is_refused_and_the_host_kept(pool: HostPool, folder: Path) -> None:
    host = pool.run(folder=folder, request=request("pid"), timeout=10)["value"]
    with pytest.raises(AnswerTooLarge) as ended:
        pool.run(folder=folder, request=request("big", size=3_000_000), timeout=10, max_answer=2_000_000)
    assert ended.value.limit == 2_000_000
    assert len(pool.run(folder=folder, request=request("big", size=900_000), timeout=10)["value"]) == 900_000
    assert pool.run(folder=folder, request=request("pid"), timeout=10)["value"] == host


@pytest.mark.parametrize(("function", "arguments"), [("raw", {"size": 2**31}), ("flood", {})])
def test_a_host_that_says_too_much_is_killed(
    pool: HostPool, folder: Path, function: str, arguments: dict[str, int]
) -> None:
    host = pool.run(folder=folder, request=request("pid"), timeout=10)["value"]
    start = time.monotonic()
    with pytest.raises(AnswerTooLarge):
        pool.run(folder=folder, request=request(function, **arguments), timeout=10)
    assert time.monotonic() - start < 2
    assert_dead_soon(host)


def test_a_host_in_which_something_still_runs_is_not_used_again(pool: HostPool, folder: Path) -> None:
    first = pool.run(folder=folder, request=request("thread"), timeout=10)["value"]
    assert_dead_soon(first)
    assert pool.run(folder=folder, request=request("pid"), timeout=10)["value"] != first


def test_many_threads_get_each_its_own_answer(make_pool: Callable[..., HostPool], folder: Path) -> None:
    pool = make_pool(per_folder=3)

    def add(number: int) -> bool:
        return bool(pool.run(folder=folder, request=request("add", a=number, b=1), timeout=30)["value"] == number + 1)

    with ThreadPoolExecutor(16) as threads:
        assert all(threads.map(add, range(400)))
    with pool._lock:
        assert not pool._busy
        assert not pool._queues
        assert len(pool._hosts) <= 3


def test_no_more_hosts_than_allowed_run_for_one_folder(make_pool: Callable[..., HostPool], folder: Path) -> None:
    pool = make_pool(per_folder=2)
    with ThreadPoolExecutor(6) as threads:
        naps = [
            threads.submit(pool.run, folder=folder, request=request("nap", seconds=0.1), timeout=30) for _ in range(6)
        ]
        assert len({nap.result()["value"] for nap in naps}) == 2


def test_a_caller_who_finds_no_free_host_is_told_in_time(make_pool: Callable[..., HostPool], folder: Path) -> None:
    pool = make_pool(per_folder=1)
    with ThreadPoolExecutor(1) as threads:
        napping = threads.submit(pool.run, folder=folder, request=request("nap", seconds=1), timeout=30)
        time.sleep(0.2)
        start = time.monotonic()
        with pytest.raises(HostBusy) as ended:
            pool.run(folder=folder, request=request("pid"), timeout=0.2)
        assert 0.2 <= time.monotonic() - start < 0.2 + SOON
        assert not ended.value.is_started
        napping.result()
    assert pool.run(folder=folder, request=request("add", a=1, b=2), timeout=10)["value"] == 3


def test_a_caller_may_cancel_while_it_waits_for_a_host(make_pool: Callable[..., HostPool], folder: Path) -> None:
    pool = make_pool(per_folder=1)
    cancel = Cancel()
    with ThreadPoolExecutor(2) as threads:
        napping = threads.submit(pool.run, folder=folder, request=request("nap", seconds=1), timeout=30)
        time.sleep(0.2)
        waiting = threads.submit(pool.run, folder=folder, request=request("pid"), timeout=30, cancel=cancel)
        time.sleep(0.1)
        start = time.monotonic()
        cancel.set()
        with pytest.raises(HostCancelled):
            waiting.result(5)
        assert time.monotonic() - start < SOON
        assert napping.result()["kind"] == "value"


def test_those_who_wait_are_served_in_turn(make_pool: Callable[..., HostPool], folder: Path) -> None:
    pool = make_pool(per_folder=1)
    served: list[int] = []

    def nap(number: int) -> None:
        pool.run(folder=folder, request=request("nap", seconds=0.02), timeout=30)
        served.append(number)

    with ThreadPoolExecutor(8) as threads:
        for number in range(8):
            threads.submit(nap, number)
            time.sleep(0.005)
    assert served == sorted(served)


def test_only_so_many_idle_hosts_are_kept_and_the_least_used_goes_first(
    make_pool: Callable[..., HostPool], tmp_path: Path
) -> None:
    pool = make_pool(idle=2)
    folders = [tmp_path / name for name in "abc"]
    for place in folders:
        place.mkdir()
        (place / "tools.py").write_text(TOOLS)

    def pid_in(place: Path) -> int:
        return int(pool.run(folder=place, request=request("pid"), timeout=10)["value"])

    first, second = pid_in(folders[0]), pid_in(folders[1])
    assert pid_in(folders[0]) == first
    pid_in(folders[2])
    assert_dead_soon(second)
    assert pid_in(folders[0]) == first


def test_a_host_learns_nothing_from_our_environment(
    pool: HostPool, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("DATABASE_URL", "PLACET_AUDIT_KEY", "DJANGO_SECRET_KEY", "AWS_SECRET_ACCESS_KEY", "PYTHONSTARTUP"):
        monkeypatch.setenv(name, "sesame")
    told = pool.run(folder=folder, request=request("surroundings"), timeout=10)["value"]
    assert set(told["env"]) == {"PATH", "LANG", "HOME", "TMPDIR", "PYTHONDONTWRITEBYTECODE"}
    assert told["env"]["HOME"] == told["env"]["TMPDIR"] != os.environ.get("HOME")
    assert "sesame" not in str(told)
    assert not [name for name in told["modules"] if name.startswith(("django", "execution", "config"))]


def test_what_a_host_wrote_goes_with_it(make_pool: Callable[..., HostPool], folder: Path) -> None:
    pool = make_pool()
    home = Path(pool.run(folder=folder, request=request("litter"), timeout=10)["value"])
    assert (home / "litter").exists()
    with pytest.raises(HostCrashed):
        pool.run(folder=folder, request=request("leave", code=1), timeout=10)
    for _ in range(200):
        if not home.exists():
            return
        time.sleep(0.01)
    pytest.fail("the host's home is still there")


def test_a_new_pool_sweeps_up_after_a_killed_process_and_spares_the_living(
    make_pool: Callable[..., HostPool], folder: Path, tmp_path: Path
) -> None:
    (tmp_path / "placet-hosts-dead" / "home").mkdir(parents=True)
    living = make_pool()
    home = Path(living.run(folder=folder, request=request("litter"), timeout=10)["value"])
    make_pool().run(folder=folder, request=request("pid"), timeout=10)
    assert not (tmp_path / "placet-hosts-dead").exists()
    assert home.exists()


def test_a_forked_copy_starts_empty_and_leaves_its_parents_hosts_alone(pool: HostPool, folder: Path) -> None:
    ours = pool.run(folder=folder, request=request("pid"), timeout=10)["value"]
    reading, writing = os.pipe()
    copy = os.fork()
    if not copy:
        try:
            theirs = pool.run(folder=folder, request=request("pid"), timeout=10)["value"]
            pool.close()
            os.write(writing, str(theirs).encode())
        finally:
            os._exit(0)
    os.close(writing)
    with os.fdopen(reading) as answer:
        theirs = int(answer.read() or 0)
    os.waitpid(copy, 0)
    assert theirs not in (0, ours)
    assert_dead_soon(theirs)
    assert pool.run(folder=folder, request=request("pid"), timeout=10)["value"] == ours


def test_a_fork_in_the_middle_of_a_call_blocks_nobody(pool: HostPool, folder: Path) -> None:
    with ThreadPoolExecutor(1) as threads:
        napping = threads.submit(pool.run, folder=folder, request=request("nap", seconds=0.5), timeout=30)
        time.sleep(0.2)
        pool._lock.acquire()  # the worst moment
        copy = os.fork()
        if not copy:
            code = 1
            try:
                answer = pool.run(folder=folder, request=request("add", a=1, b=2), timeout=10)
                pool.close()
                code = 0 if answer["value"] == 3 else 2
            finally:
                os._exit(code)
        pool._lock.release()
        assert os.waitstatus_to_exitcode(os.waitpid(copy, 0)[1]) == 0
        assert napping.result()["kind"] == "value"


def test_hosts_die_with_a_killed_process_and_survive_the_thread_that_asked(
    pool: HostPool, folder: Path, tmp_path: Path
) -> None:
    script = textwrap.dedent(f"""
        import threading
        pool = HostPool(homes=Path({str(tmp_path)!r}))
        found = []
        def ask():
            request = {{"entrypoint": "tools:pid", "arguments": {{}}}}
            found.append(pool.run(folder=Path({str(folder)!r}), request=request, timeout=10)["value"])
        for _ in range(2):
            thread = threading.Thread(target=ask)
            thread.start()
            thread.join()
        print(*found, flush=True)
        os.kill(os.getpid(), 9)
    """)
    done = run_apart(script)
    first, second = (int(pid) for pid in done.stdout.split())
    assert first == second
    assert_dead_soon(first)
    pool.run(folder=folder, request=request("pid"), timeout=10)  # sweeps up the home that was left


def test_a_process_that_ends_normally_leaves_nothing(folder: Path, tmp_path: Path) -> None:
    script = textwrap.dedent(f"""
        pool = HostPool(homes=Path({str(tmp_path)!r}))
        request = {{"entrypoint": "tools:pid", "arguments": {{}}}}
        print(pool.run(folder=Path({str(folder)!r}), request=request, timeout=10)["value"])
    """)
    done = run_apart(script)
    assert (done.returncode, done.stderr) == (0, "")
    assert_dead_soon(int(done.stdout))
    assert not list(tmp_path.glob("placet-hosts-*"))


def test_closing_ends_every_host_and_refuses_later_calls(make_pool: Callable[..., HostPool], folder: Path) -> None:
    pool = make_pool()
    idle = pool.run(folder=folder, request=request("pid"), timeout=10)["value"]
    with ThreadPoolExecutor(1) as threads:
        napping = threads.submit(pool.run, folder=folder, request=request("nap", seconds=60), timeout=90)
        time.sleep(0.3)
        start = time.monotonic()
        pool.close()
        with pytest.raises(HostCrashed):
            napping.result(5)
        assert time.monotonic() - start < 2
    assert_dead_soon(idle)
    with pytest.raises(HostBusy, match="closed"):
        pool.run(folder=folder, request=request("pid"), timeout=1)


def test_a_warm_call_costs_well_under_a_millisecond(pool: HostPool, folder: Path) -> None:
    spent = []
    for number in range(300):
        start = time.perf_counter()
        pool.run(folder=folder, request=request("add", a=number, b=1), timeout=10)
        spent.append(time.perf_counter() - start)
    assert statistics.median(spent) < 0.001


def test_every_failure_says_whether_the_tool_may_have_begun() -> None:
    for error in (HostTimeout(), HostCancelled(is_started=True), HostCrashed(1, is_started=True), AnswerTooLarge(1)):
        assert isinstance(error, HostError)
        assert error.is_started
    assert not HostBusy().is_started
