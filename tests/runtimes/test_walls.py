"""What a Python tool can reach is what it declares, whatever its code tries (A77)."""

import os
import socket
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from execution.errors import CallError, ErrorCode
from execution.runtimes import walls
from execution.runtimes.base import Invocation
from execution.runtimes.cancel import Cancel
from execution.runtimes.isolation import walls_of
from execution.runtimes.python import PythonRuntime
from placet import child, landlock
from placet.walls import openings
from registry.manifests import import_folder
from registry.publishing import publish
from registry.resolution import resolve
from registry.toolref import ToolRef
from registry.toolspec import ToolSpec
from tests.factories.registry import person

TOOLS = '''
import ctypes, os, socket, subprocess, tempfile
from placet import tool, Toolkit

toolkit = Toolkit(name="Walls", version="1.0.0")

def connect(port: int) -> str:
    """Reaches for the network."""
    with socket.create_connection(("127.0.0.1", port), timeout=5):
        return "connected"

def call_out(port: int) -> str:
    """Reaches for the network through the kernel's own queue."""
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.syscall(425, 8, bytes(120)) < 0:
        raise OSError(ctypes.get_errno(), "no ring")
    return "opened"

def run(program: str) -> str:
    """Starts another program."""
    return subprocess.run([program, "hello"], capture_output=True, text=True, check=True).stdout

def read(path: str) -> str:
    """Reads a file."""
    with open(path, "rb") as file:
        return file.read(40).decode("latin-1")

def names(path: str) -> list[str]:
    """Lists a folder."""
    return os.listdir(path)

def write(path: str) -> str:
    """Writes a file."""
    with open(path, "a") as file:
        file.write("x")
    return "written"

def remove(path: str) -> str:
    """Removes a file."""
    os.unlink(path)
    return "removed"

def own() -> str:
    """Uses what is its own: a folder for a while, a pair of sockets, a thread's event loop, its source."""
    import asyncio, json, ssl, zoneinfo
    with tempfile.TemporaryDirectory() as folder:
        with open(folder + "/x", "w") as file:
            file.write("kept")
        os.rename(folder + "/x", folder + "/y")
        one, other = socket.socketpair()
        one.sendall(open(folder + "/y", "rb").read())
        said = other.recv(10).decode()
    asyncio.run(asyncio.sleep(0))
    ssl.create_default_context()
    assert "toolkit" in open(__file__).read()
    return said

def signal(pid: int) -> str:
    """Asks whether another process is there."""
    os.kill(pid, 0)
    return "heard"

def peek(pid: int) -> str:
    """Reads what another process was started with."""
    return open(f"/proc/{pid}/environ").read(10)

for name in ("connect", "call_out", "run", "read", "names", "write", "remove", "own", "signal", "peek"):
    for title, capabilities, risk in (
        ("", ["data.read"], "low"),
        ("_freely", ["network.read", "exec.command", "filesystem.read", "filesystem.write"], "medium"),
        ("_in_effect", ["external.side_effect"], "high"),
    ):
        made = eval(name)
        copy = type(made)(made.__code__, globals(), name + title)
        copy.__doc__, copy.__annotations__, copy.__module__ = made.__doc__, made.__annotations__, __name__
        globals()[name + title] = tool(copy, capabilities=capabilities, risk=risk)
'''
Run = Callable[..., Any]


@pytest.fixture
def spec(tmp_path: Path, db: None) -> Callable[[str], ToolSpec]:
    folder = tmp_path / "source"
    folder.mkdir()
    (folder / "walls.py").write_text(TOOLS)
    for result in import_folder(folder, by=None):
        publish(result.version, by=None, reviewed_by=person())

    def find(name: str) -> ToolSpec:
        ref = ToolRef.parse(f"Walls.{name}")
        assert ref is not None
        tool = resolve(ref)
        assert isinstance(tool, ToolSpec)
        return tool

    return find


@pytest.fixture
def run(spec: Callable[[str], ToolSpec]) -> Iterator[Run]:
    runtime = PythonRuntime()

    def call(name: str, **arguments: Any) -> Any:
        invocation = Invocation(
            tool=spec(name), arguments=arguments, call_id="c", attempt=1, agent="demo", timeout=20.0,
            cancel=Cancel(), on_news=lambda news: None,
        )  # fmt: skip
        return runtime.run(invocation).value

    yield call
    runtime._pool.close()


@pytest.fixture
def port() -> Iterator[int]:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        yield listener.getsockname()[1]


def refused(run: Run, name: str, **arguments: Any) -> str:
    with pytest.raises(CallError) as failed:
        run(name, **arguments)
    assert failed.value.code is ErrorCode.EXECUTION_FAILED
    assert "Errno" in failed.value.failure.developer_message
    return failed.value.failure.developer_message


def test_only_a_tool_that_declares_it_reaches_the_network(run: Run, port: int) -> None:
    why = refused(run, "Connect", port=port)
    assert "PermissionError" in why
    assert "closed to this tool: the network" in why
    assert "declare network.read" in why
    assert run("ConnectFreely", port=port) == "connected"
    assert run("ConnectInEffect", port=port) == "connected"  # an effect outside needs a way there
    for name in ("CallOut", "CallOutFreely", "CallOutInEffect"):  # a way round the filter is closed to all
        refused(run, name, port=port)


def test_only_a_tool_that_declares_it_starts_programs(run: Run) -> None:
    assert "PermissionError" in refused(run, "Run", program="/bin/echo")
    assert "PermissionError" in refused(run, "RunInEffect", program="/bin/echo")
    assert run("RunFreely", program="/bin/echo") == "hello\n"


def test_only_a_tool_that_declares_it_reads_and_changes_files(run: Run, tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_text("content")
    for title in ("", "InEffect"):
        for name, path in (("Read", file), ("Read", "/etc/passwd"), ("Names", "/"), ("Write", file), ("Remove", file)):
            assert "PermissionError" in refused(run, f"{name}{title}", path=str(path))
    assert file.read_text() == "content"
    assert run("ReadFreely", path=str(file)) == "content"
    assert "etc" in run("NamesFreely", path="/")
    assert run("WriteFreely", path=str(file)) == "written"
    assert file.read_text() == "contentx"
    assert run("RemoveFreely", path=str(file)) == "removed"
    assert not file.exists()


def test_no_tool_at_all_reaches_our_own_home(run: Run, settings: Any, tmp_path: Path) -> None:
    home = Path(settings.PLACET_HOME)
    (home / "treasure").write_text("gold")
    (tmp_path / "way").symlink_to(home)
    for path in (home / "treasure", tmp_path / "way" / "treasure", home / "new"):
        for name in ("Read", "ReadFreely", "ReadInEffect", "WriteFreely"):
            assert "Error" in refused(run, name, path=str(path))
    assert not (home / "new").exists()


@pytest.mark.parametrize("title", ["", "Freely", "InEffect"])
def test_every_tool_has_what_is_its_own(run: Run, title: str) -> None:
    assert run(f"Own{title}") == "kept"


@pytest.mark.parametrize("title", ["", "Freely", "InEffect"])
def test_no_tool_looks_into_other_processes_or_signals_them(run: Run, title: str) -> None:
    refused(run, f"Peek{title}", pid=os.getpid())
    if landlock.version() >= 6:
        refused(run, f"Signal{title}", pid=os.getpid())


def test_tools_with_other_walls_never_share_a_process(spec: Callable[[str], ToolSpec]) -> None:
    assert walls_of(spec("Own")) == walls_of(spec("Read"))
    assert walls_of(spec("Own")) != walls_of(spec("OwnFreely"))


@pytest.mark.parametrize(
    ("capabilities", "opened"),
    [
        ([], ()),
        (["data.read", "data.write", "payments.refund"], ()),
        (["network.write"], ("network",)),
        (["external.side_effect"], ("network",)),
        (["exec.command", "filesystem.read"], ("commands", "reading")),
        (["filesystem.write"], ("writing",)),
    ],
)
def test_capabilities_open_what_they_name(capabilities: list[str], opened: tuple[str, ...]) -> None:
    assert openings(capabilities) == opened


def test_a_risky_tool_never_runs_with_a_wall_less_and_others_only_with_a_warning(
    run: Run, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """As on a machine whose kernel knows no Landlock: its host says so, before it has run anything."""
    broken = "import sys, placet.landlock as l; l.version = lambda: 0; import placet.host as h; h.main(sys.argv[1:])"
    whole = child.command
    monkeypatch.setattr("placet.child.command", lambda module, *options: [*whole(module)[:3], "-c", broken, *options])
    monkeypatch.setattr(walls, "_TOLD", set())
    with pytest.raises(CallError) as failed:
        run("OwnInEffect")
    assert failed.value.code is ErrorCode.ISOLATION_MISSING
    assert run("Own") == "kept"
    assert "a wall less: the kernel has no Landlock" in caplog.text


def test_around_leaves_out_what_is_hidden_and_no_more(tmp_path: Path) -> None:
    for name in ("a/secret/x", "a/open/x", "b/x"):
        (tmp_path / name).parent.mkdir(parents=True)
        (tmp_path / name).write_text("")
    (tmp_path / "link").symlink_to(tmp_path / "a" / "secret")
    found = {path for path in landlock.around([str(tmp_path / "a" / "secret")]) if path.startswith(str(tmp_path))}
    assert found == {str(tmp_path / "a" / "open"), str(tmp_path / "b")}
    assert "/usr" in set(landlock.around([str(tmp_path)]))
