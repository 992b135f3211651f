"""A host as its pool would start it, spoken to frame by frame."""

import os
import signal
import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from placet import child, frames
from tests.placet.stub import KEY, Answers, Desk, Open, Stub


class SpokenHost:
    """One real host process and the words to speak with it."""

    def __init__(self, folder: Path, home: Path) -> None:
        self.sock, theirs = socket.socketpair()
        self.sock.settimeout(10)
        self.process = subprocess.Popen(
            child.command("placet.host", "--fd", str(theirs.fileno()), "--folder", str(folder)),
            env=child.environment(home),
            cwd=home,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            pass_fds=(theirs.fileno(),),
            start_new_session=True,
        )
        theirs.close()
        os.set_blocking(self.sock.fileno(), True)
        assert self.read() == {"kind": "ready", "missing": []}

    def read(self) -> dict[str, Any] | None:
        return frames.read(self.sock.fileno())

    def call(self, entrypoint: str, **more: Any) -> list[dict[str, Any]]:
        """Every frame of one call; the last one is final."""
        arguments = more.pop("arguments", {})
        request = {"entrypoint": entrypoint, "arguments": arguments, **more}
        frames.write(self.sock.fileno(), frames.pack(request))
        told = []
        while (frame := self.read()) is not None:
            told.append(frame)
            if frame["kind"] in ("value", "content", "error"):
                break
        return told

    def close(self) -> None:
        self.sock.close()
        if self.process.poll() is None:
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()


@pytest.fixture
def start_host(tmp_path: Path) -> Iterator[Any]:
    """Starts a host over the given source of a module called `tools`."""
    started: list[SpokenHost] = []
    home = tmp_path / "home"
    home.mkdir()

    def start(source: str = "", folder: Path | None = None) -> SpokenHost:
        if folder is None:
            folder = tmp_path / "toolkit"
            folder.mkdir(exist_ok=True)
            (folder / "tools.py").write_text(source)
        started.append(SpokenHost(folder, home))
        return started[-1]

    yield start
    for host in started:
        host.close()


@pytest.fixture
def key_file(tmp_path: Path) -> Path:
    path = tmp_path / "key"
    path.write_text(f"{KEY}\n")
    path.chmod(0o600)
    return path


@pytest.fixture
def opened(key_file: Path) -> Iterator[Open]:
    """A bridge and the server behind it."""
    desks: list[Desk] = []
    stubs: list[Stub] = []

    def make(answers: Answers, port: int = 0) -> tuple[Desk, Stub]:
        stubs.append(Stub(answers, port))
        desks.append(Desk(stubs[-1].port, "--key-file", str(key_file)))
        return desks[-1], stubs[-1]

    yield make
    for desk in desks:
        desk.end()
    for stub in stubs:
        stub.close()
