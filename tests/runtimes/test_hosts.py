"""The pool answers in time whatever a tool does, and nothing of an ended call is left behind."""

import os
import signal
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from execution.runtimes.hosts import (
    AnswerTooLarge,
    Cancel,
    HostBusy,
    HostCancelled,
    HostCrashed,
    HostPool,
    HostTimeout,
)
from tests.runtimes.hosttools import SOON, assert_dead_soon, request


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
