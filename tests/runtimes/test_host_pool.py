"""The pool: who gets a host, how many there are, and that none is left behind."""

import os
import statistics
import textwrap
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from execution.runtimes.host import Host
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
from tests.runtimes.hosttools import SOON, TOOLS, assert_dead_soon, request, run_apart


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


def test_a_host_that_is_ready_too_late_for_one_call_serves_the_next(
    make_pool: Callable[..., HostPool], folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pool = make_pool(per_folder=1)
    ready = Host.await_ready
    with monkeypatch.context() as patch:
        patch.setattr(Host, "await_ready", lambda host, deadline: ready(host, 0.0))
        for _ in range(2):
            with pytest.raises(HostBusy):
                pool.run(folder=folder, request=request("pid"), timeout=10)
        (host,) = pool._hosts
    assert pool.run(folder=folder, request=request("pid"), timeout=10)["value"] == host.pid


def test_a_host_that_is_not_ready_within_its_own_patience_is_given_up(
    make_pool: Callable[..., HostPool], folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pool = make_pool(per_folder=1)
    ready = Host.await_ready
    monkeypatch.setattr(Host, "await_ready", lambda host, deadline: ready(host, 0.0))
    with pytest.raises(HostBusy):
        pool.run(folder=folder, request=request("pid"), timeout=10, patience=10)
    assert not pool._hosts


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


def test_a_process_that_ends_abruptly_can_leave_nothing_either(folder: Path, tmp_path: Path) -> None:
    script = textwrap.dedent(f"""
        from execution.runtimes.hosts import end_all
        pool = HostPool(homes=Path({str(tmp_path)!r}))
        unused = HostPool(homes=Path({str(tmp_path)!r}))
        request = {{"entrypoint": "tools:pid", "arguments": {{}}}}
        print(pool.run(folder=Path({str(folder)!r}), request=request, timeout=10)["value"], flush=True)
        end_all()
        os._exit(0)
    """)
    done = run_apart(script)
    assert (done.returncode, done.stderr) == (0, "")
    assert_dead_soon(int(done.stdout))
    assert not list(tmp_path.glob("placet-hosts-*"))


def test_a_call_that_runs_at_the_end_is_not_made_a_failure(make_pool: Callable[..., HostPool], folder: Path) -> None:
    pool = make_pool()
    with ThreadPoolExecutor(1) as threads:
        napping = threads.submit(pool.run, folder=folder, request=request("nap", seconds=1.0), timeout=30)
        while not pool._busy:
            time.sleep(0.01)
        start = time.monotonic()
        pool.end()
        assert time.monotonic() - start < 0.5
        assert not napping.done()
        assert napping.result()["kind"] == "value"
    idle = pool.run(folder=folder, request=request("pid"), timeout=10)["value"]
    pool.end()
    assert_dead_soon(idle)
    with pytest.raises(HostBusy, match="closed"):
        pool.run(folder=folder, request=request("pid"), timeout=10)


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
