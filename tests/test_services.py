"""The servers that the other tests stand on."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest
from django.conf import LazySettings

from tests import needs
from tests.services import postgres, redis

ROOT = Path(__file__).resolve().parents[1]
PROGRAM = """
import sys, time
from tests.services import {name}
with {name}() as url:
    print(url, flush=True)
    time.sleep(60)
"""


def test_postgres_is_version_18_and_takes_200_connections() -> None:
    with postgres() as url, psycopg.connect(url) as connection:
        assert connection.info.server_version // 10_000 == 18
        assert connection.execute("SHOW max_connections").fetchone() == ("200",)
        assert connection.execute("SHOW server_encoding").fetchone() == ("UTF8",)


def test_postgres_stops_although_a_client_is_still_connected() -> None:
    with postgres() as url:
        connection = psycopg.connect(url)
        begin = time.monotonic()
    assert time.monotonic() - begin < 5
    with pytest.raises(psycopg.OperationalError):
        psycopg.connect(url, connect_timeout=1)
    connection.close()


def test_redis_keeps_what_it_is_given_until_it_stops() -> None:
    with redis() as url:
        port = int(url.rpartition(":")[2].partition("/")[0])
        with socket.create_connection(("127.0.0.1", port)) as connection:
            connection.sendall(b"SET k v\r\nGET k\r\n")
            answer = b""
            while answer.count(b"\r\n") < 3:
                answer += connection.recv(64)
        assert answer == b"+OK\r\n$1\r\nv\r\n"
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.1", port))


@pytest.fixture
def passage() -> Iterator[Path]:
    """A folder that others may walk through: a server that runs as another user must find its own in it.

    Not one of pytest's, whose parent is closed again by each pytest that starts meanwhile.
    """
    with tempfile.TemporaryDirectory() as name:
        Path(name).chmod(0o755)
        yield Path(name)


@pytest.mark.parametrize("name", ["postgres", "redis"])
def test_a_server_and_its_folder_go_when_their_user_is_killed(name: str, passage: Path) -> None:
    environment = {**os.environ, "TMPDIR": str(passage)}
    user = subprocess.Popen(
        [sys.executable, "-c", PROGRAM.format(name=name)], stdout=subprocess.PIPE, text=True, env=environment
    )
    assert user.stdout is not None
    url = user.stdout.readline()
    port = int(url.rpartition(":")[2].partition("/")[0])
    user.send_signal(signal.SIGKILL)
    user.wait()
    user.stdout.close()
    deadline = time.monotonic() + 10
    while list(passage.iterdir()) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert list(passage.iterdir()) == []
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.1", port))


def test_tests_reach_only_this_machine() -> None:
    with socket.socket() as connection, pytest.raises(pytest.fail.Exception, match="not this machine"):
        connection.connect(("192.0.2.1", 80))
    with pytest.raises(pytest.fail.Exception, match="name server"):
        socket.create_connection(("example.com", 80), timeout=1)


def test_a_need_that_nobody_can_check_is_an_error() -> None:
    with pytest.raises(pytest.UsageError, match="chromium"):
        needs.lack_of("a time machine")


EXCUSES = """
import pytest
from django.conf import LazySettings

@pytest.mark.skip(reason="tired")
def test_skipped(): pass

@pytest.mark.xfail(reason="known")
def test_expected_to_fail(): assert False

def test_skips_itself(): pytest.skip("not today")

@pytest.mark.needs("chromium")
def test_in_a_browser(): assert False

def test_honest(): pass
"""


@pytest.mark.parametrize("parallel", [[], ["-n", "1"]])
def test_a_plain_skip_fails_the_run_and_a_missing_browser_is_named(parallel: list[str], tmp_path: Path) -> None:
    (tmp_path / "test_excuses.py").write_text(EXCUSES)
    (tmp_path / "no_browser.py").write_text(
        "from tests import needs\nneeds.CHECKS['chromium'] = lambda: 'there is no browser'"
    )
    settings = [f"--rootdir={tmp_path}", "-c", str(ROOT / "pyproject.toml"), "-p", "tests.conftest", "-p", "no_browser"]
    run = subprocess.run(
        [sys.executable, "-m", "pytest", "test_excuses.py", "-q", *settings, *parallel],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": f"{ROOT}:{tmp_path}", "PLACET_TEST_DATABASE": "sqlite"},
        capture_output=True,
        text=True,
    )
    assert run.returncode == 1, run.stdout
    assert "2 failed, 1 passed, 1 error" in run.stdout
    assert "= not run =" in run.stdout
    assert "test_excuses.py::test_in_a_browser: there is no browser" in run.stdout


def test_a_process_of_a_parallel_run_has_a_home_of_its_own(settings: LazySettings) -> None:
    assert str(settings.PLACET_HOME) == os.environ["PLACET_HOME"]
