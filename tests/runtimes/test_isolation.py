"""Isolation: who gets walls, that they hold, and that nothing runs where they are missing (A80, A81, F49)."""

import os
import resource
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from execution.errors import CallError, ErrorCode
from execution.runtimes import RUNTIMES, container, engine, owner
from execution.runtimes.base import Invocation
from execution.runtimes.cancel import Cancel
from execution.runtimes.engine import Engine, EngineMissing, Order
from placet import host, limits
from registry.fields import ManifestError
from registry.manifests import import_folder
from registry.publishing import publish
from registry.resolution import resolve
from registry.toolref import ToolRef
from registry.toolspec import ToolSpec
from tests.factories.registry import person
from tests.runtimes import sandboxlabs

IMAGE = "localhost/tool@sha256:" + "a" * 64
ORDER = Order(
    name="placet-1", image=IMAGE, command=("a", "b"), memory="64m", cpus=0.5, pids=32, variables=["V"], seconds=2.5
)

RISKY = """
import os, resource, sys, threading
from placet import tool, Toolkit

toolkit = Toolkit(name="Risky", version="1.0.0")
state = []

@tool(description="What this process may do.", risk="high")
def limits() -> dict:
    names = ("DATA", "AS", "NOFILE", "FSIZE", "CORE", "NPROC")
    found = {name: resource.getrlimit(getattr(resource, "RLIMIT_" + name))[1] for name in names}
    status = open("/proc/self/status").read()
    found["no_new_privs"] = "NoNewPrivs:\\t1" in status
    return found

@tool(description="Who runs this.", risk="high")
def remember() -> dict:
    state.append(1)
    return {"pid": os.getpid(), "calls": len(state)}

@tool(description="The same, at low risk.", risk="low")
def recall() -> dict:
    state.append(1)
    return {"pid": os.getpid(), "calls": len(state)}

@tool(description="What is open and what is known here.", risk="critical")
def surroundings() -> dict:
    found = []
    for fd in os.listdir("/proc/self/fd"):
        try:
            found.append(os.readlink("/proc/self/fd/" + fd))
        except OSError:
            pass
    return {"open": found, "environment": dict(os.environ)}

@tool(description="Wants all memory.", risk="critical")
def hog() -> int:
    return len(bytearray(2 * 1024 ** 3))

@tool(description="Wants all files.", risk="critical")
def files() -> int:
    return len([open("/dev/null") for _ in range(10_000)])

@tool(description="Fills the disk.", risk="critical")
def disk() -> None:
    with open("big", "wb") as file:
        for _ in range(1000):
            file.write(bytes(1024 * 1024))
"""


@pytest.fixture
def risky(tmp_path: Path, db: None) -> Any:
    (tmp_path / "risky.py").write_text(RISKY)
    for result in import_folder(tmp_path, by=None):
        publish(result.version, by=None, reviewed_by=person())

    def run(name: str) -> Any:
        ref = ToolRef.parse(f"Risky.{name}")
        assert ref is not None
        tool = resolve(ref)
        assert isinstance(tool, ToolSpec)
        return RUNTIMES["python"].run(invocation(tool)).value

    return run


def invocation(tool: ToolSpec, **fields: Any) -> Invocation:
    given: dict[str, Any] = {"arguments": {}, "call_id": "c", "attempt": 1, "agent": "demo", "timeout": 20.0, **fields}
    return Invocation(tool=tool, cancel=Cancel(), on_news=lambda news: None, **given)


def test_a_risky_tool_has_narrow_limits(risky: Any) -> None:
    found = risky("Limits")
    assert found["DATA"] <= limits.CONFINED_MEMORY
    assert found["AS"] <= limits.CONFINED_ADDRESSES
    assert found["NOFILE"] <= limits.CONFINED_FILES
    assert found["FSIZE"] <= limits.CONFINED_FILE_SIZE
    assert found["CORE"] == 0
    assert found["NPROC"] != resource.RLIM_INFINITY
    assert found["no_new_privs"]


def test_a_risky_tool_gets_a_process_that_ran_nothing_before_and_ends_with_the_call(risky: Any) -> None:
    first, second = risky("Remember"), risky("Remember")
    assert (first["calls"], second["calls"]) == (1, 1)
    assert first["pid"] != second["pid"]
    until = time.monotonic() + 5
    while Path(f"/proc/{second['pid']}").exists():
        assert time.monotonic() < until
        time.sleep(0.05)


def test_a_tool_of_low_risk_keeps_its_process_and_never_shares_it_with_a_risky_one(risky: Any) -> None:
    first = risky("Recall")
    assert risky("Remember")["pid"] != first["pid"]
    assert risky("Recall") == {"pid": first["pid"], "calls": 2}


def test_a_risky_tool_inherits_neither_files_nor_names(risky: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DATABASE_URL", "postgres://user:pass@host/db")
    ours = os.open("/etc/hostname", os.O_RDONLY)
    os.set_inheritable(ours, True)
    try:
        found = risky("Surroundings")
    finally:
        os.close(ours)
    assert "/etc/hostname" not in found["open"]
    assert sum(name.startswith("socket:") for name in found["open"]) == 1  # the one it speaks to us through
    assert set(found["environment"]) <= {"PATH", "LANG", "HOME", "TMPDIR", "PYTHONDONTWRITEBYTECODE", "LC_CTYPE"}


@pytest.mark.parametrize("name", ["Hog", "Files", "Disk"])
def test_a_risky_tool_that_exhausts_what_it_has_fails_alone(risky: Any, name: str) -> None:
    with pytest.raises(CallError) as failed:
        risky(name)
    assert failed.value.code is ErrorCode.EXECUTION_FAILED
    assert risky("Remember")["calls"] == 1


def test_a_host_that_cannot_be_confined_runs_nothing(risky: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """As where the kernel refuses: the host gives up before it listens, and the call is told so."""
    stub = [sys.executable, "-c", f"import os; os._exit({host.NO_WALLS})"]
    monkeypatch.setattr("placet.child.command", lambda module, *options: stub)
    with pytest.raises(CallError) as failed:
        risky("Remember")
    assert (failed.value.code, failed.value.is_sent) == (ErrorCode.ISOLATION_MISSING, False)
    assert failed.value.code.http == 503


def test_every_container_gets_the_same_walls_whoever_builds_them() -> None:
    podman, docker = Engine("podman", "/usr/bin/podman").run(ORDER), Engine("docker", "/usr/bin/docker").run(ORDER)
    for command in (podman, docker):
        assert _has(command, "--rm", "-i", "--read-only", "--no-healthcheck")
        for flag, value in (
            ("--network", "none"),
            ("--cap-drop", "ALL"),
            ("--security-opt", "no-new-privileges"),
            ("--user", "65532:65532"),
            ("--memory", "64m"),
            ("--memory-swap", "64m"),
            ("--cpus", "0.5"),
            ("--pids-limit", "32"),
            ("--pull", "never"),
            ("--log-driver", "none"),
            ("--env", "V"),
            ("--name", "placet-1"),
        ):
            assert command[command.index(flag) + 1] == value
        assert command[-3:] == [IMAGE, "a", "b"]
        assert not _has(command, "--privileged")
    assert _has(docker, "--init")
    assert podman[podman.index("--timeout") + 1] == "8"
    assert "--timeout" not in docker


def _has(command: list[str], *flags: str) -> bool:
    return all(flag in command for flag in flags)


@pytest.mark.parametrize(
    "options",
    [
        {"image": "busybox:latest"},
        {"image": "busybox"},
        {"image": "-v/:/host@sha256:" + "a" * 64},
        {"image": "--privileged@sha256:" + "a" * 64},
        {"image": f"x y@sha256:{'a' * 64}"},
        {"image": IMAGE, "privileged": True},
        {"image": IMAGE, "volumes": ["/:/host"]},
        {"image": IMAGE, "pid": "host"},
        {"image": IMAGE, "capAdd": ["ALL"]},
        {"image": IMAGE, "user": "0:0"},
        {"image": IMAGE, "network": "host"},
        {"image": IMAGE, "network": "bridge"},
        {"image": IMAGE, "memory": "1m --privileged"},
        {"image": IMAGE, "memory": "0m"},
        {"image": IMAGE, "pids": -1},
        {"image": IMAGE, "cpus": "1 --privileged"},
        {"image": IMAGE, "command": "sh -c id"},
        {"image": IMAGE, "env": {"LD_PRELOAD": "/x"}},
    ],
)
def test_a_manifest_cannot_loosen_a_containers_walls(tmp_path: Path, db: None, options: dict[str, Any]) -> None:
    sandboxlabs.toolkit(tmp_path, sandboxlabs.tool("Run", type="container", **options))
    with pytest.raises(ManifestError):
        import_folder(tmp_path, by=None)


def _fake(folder: Path, name: str, answer: str) -> str:
    """An engine that answers every question so, and writes down what it was asked."""
    path = folder / name
    path.write_text(f'#!/bin/sh\necho "$@" >>{folder}/asked\n{answer}\n')
    path.chmod(0o755)
    return str(path)


POWERLESS = '{"host": {"cgroupVersion": "v1", "cgroupControllers": [], "security": {"rootless": true}}}'


@pytest.mark.parametrize(
    ("name", "answer", "why"),
    [
        ("podman", "exit 1", "does not answer"),
        ("docker", "echo no daemon >&2; exit 1", "does not answer"),
        ("podman", f"echo '{POWERLESS}'", "cannot limit memory, cpu, pids"),
        ("docker", 'echo \'{"MemoryLimit": true, "PidsLimit": false}\'', "cannot limit processor time, processes"),
        ("podman", "echo nonsense", "does not say"),
        ("podman", "echo '{}'", "does not say"),
        ("docker", "echo '[]'", "does not say"),
    ],
)
def test_an_engine_that_cannot_keep_the_walls_is_no_engine(tmp_path: Path, name: str, answer: str, why: str) -> None:
    with pytest.raises(EngineMissing) as missing:
        engine.find(_fake(tmp_path, name, answer))
    assert why in str(missing.value)


def test_an_engine_of_another_kind_is_refused() -> None:
    with pytest.raises(EngineMissing, match="must name one of"):
        engine.find("/bin/sh")


@pytest.mark.parametrize("wanted", ["docker", ""])
def test_without_an_engine_no_container_tool_runs(
    tmp_path: Path, db: None, settings: Any, monkeypatch: pytest.MonkeyPatch, wanted: str
) -> None:
    settings.PLACET_CONTAINER_ENGINE = wanted
    _fake(tmp_path, "docker", "exit 1")
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(container, "Conversation", _must_not_start)
    folder = tmp_path / "toolkit"
    folder.mkdir()
    sandboxlabs.toolkit(folder, sandboxlabs.tool("Run", type="container", image=IMAGE))
    for result in import_folder(folder, by=None):
        publish(result.version, by=None)
    ref = ToolRef.parse("Lab.Run")
    assert ref is not None
    tool = resolve(ref)
    assert tool is not None
    with pytest.raises(CallError) as failed:
        container.ContainerRuntime().run(invocation(tool))
    assert (failed.value.code, failed.value.is_sent) == (ErrorCode.ISOLATION_MISSING, False)
    assert "run" not in (tmp_path / "asked").read_text().split()


def _must_not_start(*_: Any) -> None:
    raise AssertionError("a process was started")


def test_the_mark_of_a_process_is_its_own() -> None:
    assert owner.mark() == owner.mark()
    assert not owner.is_gone(owner.mark())
    assert owner.is_gone(owner.mark(2**22 + 1)) is False  # nobody ever had this number, and nobody took it over
    world, pid, _ = owner.mark().rsplit(".", 2)
    assert owner.is_gone(f"{world}.{pid}.1")
    assert not owner.is_gone(f"other-machine.1.{pid}.1")
    assert not owner.is_gone("")
