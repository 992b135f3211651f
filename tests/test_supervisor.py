"""Children that die, that do not listen, and that write what a terminal should not obey."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from config import supervisor
from config.reaper import Reaper, end_groups
from config.stop import Stop
from config.supervisor import Program, Supervisor


@pytest.fixture
def reaper() -> Iterator[Reaper]:
    reaper = Reaper()
    yield reaper
    reaper.close()


@pytest.fixture(autouse=True)
def _short_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(supervisor, "PAUSE", 0.01)


def program(code: str, name: str = "web", noise: tuple[str, ...] = ()) -> Program:
    command = [sys.executable, "-u", "-c", code]
    return Program(name=name, command=command, environment=dict(os.environ), folder=Path.cwd(), noise=noise)


def always() -> bool:
    return True


def test_a_child_that_keeps_dying_is_given_up_with_its_last_lines(
    reaper: Reaper, capfd: pytest.CaptureFixture[str]
) -> None:
    children = Supervisor([program("print('no such table'); exit(3)")], reaper)
    assert children.run(Stop(), always) is False
    children.stop()
    output = capfd.readouterr().out
    assert output.count("web ended with code 3; starting it again") == 4
    assert "web ended with code 3, 5 times in a row: giving up. Its last lines were:\n    no such table" in output


def test_every_line_carries_its_childs_name_and_steers_no_terminal(
    reaper: Reaper, capfd: pytest.CaptureFixture[str]
) -> None:
    code = "import time; print('a\\x1b[2Jb\\rc'); print('known noise here'); time.sleep(60)"
    children = Supervisor(
        [program(code, noise=("known noise",)), program("import time; time.sleep(60)", "worker")], reaper
    )
    stop = Stop()
    threading.Timer(1.0, stop.set).start()
    assert children.run(stop, always) is True
    children.stop()
    assert capfd.readouterr().out == "web    | a\\x1b[2Jb\\x0dc\n"


def test_stopping_asks_first_and_then_insists_also_with_grandchildren() -> None:
    stubborn = (
        "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); print('up', flush=True); time.sleep(60)"
    )
    parent = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {stubborn!r}])"
    process = subprocess.Popen([sys.executable, "-c", parent], stdout=subprocess.PIPE, start_new_session=True)
    assert process.stdout is not None
    with process.stdout as output:
        assert output.readline() == b"up\n"
        begin = time.monotonic()
        end_groups([process.pid], patience=0.5, poll=process.poll)
        assert output.read() == b""  # nobody holds the other end any more
    process.wait()
    assert 0.5 <= time.monotonic() - begin < 3


def test_the_reaper_ends_groups_and_removes_folders_that_were_not_taken_back(tmp_path: Path) -> None:
    reaper = Reaper()
    sleeper = subprocess.Popen(["sleep", "60"], start_new_session=True)
    spared = subprocess.Popen(["sleep", "60"], start_new_session=True)
    folder = tmp_path / "folder"
    folder.mkdir()
    reaper.folder(folder)
    reaper.group(sleeper.pid)
    reaper.group(spared.pid)
    reaper.forget_group(spared.pid)
    reaper.close()
    assert sleeper.wait(timeout=5) == -15
    assert spared.poll() is None
    assert not folder.exists()
    spared.kill()
    spared.wait()
