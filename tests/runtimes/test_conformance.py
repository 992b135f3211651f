"""What every runtime promises, asked of each that is installed; a new one brings the same five tools."""

import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, nullcontext, suppress
from pathlib import Path
from typing import Any

import pytest

from execution.errors import CallError, ErrorCode
from execution.runtimes import RUNTIMES
from execution.runtimes.base import Invocation
from execution.runtimes.cancel import Cancel
from execution.runtimes.python import PythonRuntime
from registry.manifests import import_folder
from registry.publishing import publish
from registry.resolution import resolve
from registry.toolref import ToolRef
from registry.toolspec import ToolSpec
from tests.runtimes import grpclab, sandboxlabs, weblabs

PYTHON = """
import os
import time
from placet import Toolkit, ToolError, tool

toolkit = Toolkit(name="Lab", version="1.0.0")

@tool(description="Returns what it gets.")
def echo(value: str) -> str:
    return value

@tool(description="Fails and says so.")
def fail() -> None:
    raise ToolError("No such thing", can_retry=True, retry_after_ms=5)

@tool(description="Ignores every signal to stop.")
def hang() -> None:
    while True:
        try:
            time.sleep(60)
        except BaseException:
            pass

@tool(description="Ends without a word.")
def die() -> None:
    os._exit(3)

@tool(description="Returns more than anyone wants.")
def flood() -> str:
    return "x" * 100_000
"""


def _python(folder: Path) -> None:
    (folder / "lab.py").write_text(PYTHON)


# How each runtime gets the toolkit Lab with echo, fail, hang, die and flood; one that needs a server returns a context.
LABS: Mapping[str, Callable[[Path], AbstractContextManager[Any] | None]] = {
    "container": sandboxlabs.container,
    "external": weblabs.external,
    "grpc": grpclab.grpc,
    "http": weblabs.http,
    "mcp": weblabs.mcp,
    "python": _python,
    "wasm": sandboxlabs.wasm,
    "webhook-callback": weblabs.webhook,
}


NEEDS = {"container": "podman"}


@pytest.fixture(
    params=[pytest.param(name, marks=pytest.mark.needs(NEEDS[name]) if name in NEEDS else ()) for name in sorted(LABS)]
)
def lab(request: pytest.FixtureRequest, tmp_path: Path, db: None) -> Iterator[Callable[..., Any]]:
    with LABS[request.param](tmp_path) or nullcontext():
        for result in import_folder(tmp_path, by=None):
            publish(result.version, by=None)
        yield _runner(request.param)


def _runner(runtime: str) -> Callable[..., Any]:
    def run(name: str, cancel: Cancel | None = None, **fields: Any) -> Any:
        ref = ToolRef.parse(f"Lab.{name}")
        assert ref is not None
        tool = resolve(ref)
        assert isinstance(tool, ToolSpec)
        given: dict[str, Any] = {
            "arguments": {},
            "call_id": "c",
            "attempt": 1,
            "agent": "demo",
            "timeout": 20.0,
            **fields,
        }
        invocation = Invocation(tool=tool, cancel=cancel or Cancel(), on_news=lambda news: None, **given)
        return RUNTIMES[runtime].run(invocation)

    return run


def test_every_runtime_is_asked() -> None:
    assert set(LABS) == set(RUNTIMES)


def test_the_arguments_go_in_and_the_value_comes_back(lab: Callable[..., Any]) -> None:
    assert lab("Echo", arguments={"value": "ä\n"}).value == "ä\n"


def test_what_the_tool_says_about_its_failure_comes_back(lab: Callable[..., Any]) -> None:
    with pytest.raises(CallError) as failed:
        lab("Fail")
    failure = failed.value.failure
    assert (failure.code, failure.message) == (ErrorCode.EXECUTION_FAILED, "No such thing")
    assert (failure.can_retry, failure.retry_after_ms) == (True, 5)


def test_the_timeout_holds_whatever_the_tool_does(lab: Callable[..., Any]) -> None:
    lab("Echo", arguments={"value": "warm"})
    began = time.monotonic()
    with pytest.raises(CallError) as failed:
        lab("Hang", timeout=0.3)
    assert failed.value.failure.code is ErrorCode.TIMEOUT
    assert time.monotonic() - began < 5


def test_19_a_stuck_tool_is_left_within_120_ms_of_its_limit(lab: Callable[..., Any]) -> None:
    """Best of three, for a test may share its processor; what a sandbox takes to be built is not the tool's time."""

    def seconds(name: str, **fields: Any) -> float:
        began = time.monotonic()
        with suppress(CallError):
            lab(name, **fields)
        return time.monotonic() - began

    built, taken = [], []
    for _ in range(3):
        lab("Echo", arguments={"value": "warm"})  # the one before it may have been killed
        built.append(seconds("Echo", arguments={"value": "x"}))
        taken.append(seconds("Hang", timeout=0.4))
    assert min(taken) - min(built) < 0.4 + 0.12


def test_19_a_hurried_callers_time_counts_from_the_start(lab: Callable[..., Any]) -> None:
    """What a sandbox takes to be built is in it, for the caller waits for that too; best of three again."""

    def overrun() -> float:
        began = time.monotonic()
        with pytest.raises(CallError) as failed:
            lab("Hang", timeout=0.02, is_hurried=True)
        assert failed.value.failure.code is ErrorCode.TIMEOUT
        assert failed.value.failure.details["timeout_ms"] == 20
        return time.monotonic() - began - 0.02

    assert min(overrun() for _ in range(3)) < 0.12
    assert lab("Echo", arguments={"value": "later"}).value == "later"


@pytest.mark.parametrize("lab", ["python", "wasm"], indirect=True)
def test_a_process_that_is_not_ready_in_a_hurried_callers_time_is_a_timeout_and_in_the_tools_own_none(
    lab: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    python = PythonRuntime()  # with no process that is ready from a call before
    monkeypatch.setitem(RUNTIMES, "python", python)
    with pytest.raises(CallError) as failed:
        lab("Echo", arguments={"value": "x"}, timeout=0.02, is_hurried=True)
    assert failed.value.failure.code is ErrorCode.TIMEOUT
    assert lab("Echo", arguments={"value": "x"}, timeout=0.5).value == "x"
    python._pool.close()


def test_a_cancellation_reaches_a_tool_that_does_not_listen(lab: Callable[..., Any]) -> None:
    cancel = Cancel()
    threading.Timer(0.5, cancel.set).start()
    began = time.monotonic()
    with pytest.raises(CallError) as failed:
        lab("Hang", cancel)
    assert failed.value.failure.code is ErrorCode.CANCELED
    assert time.monotonic() - began < 10


def test_a_tool_that_dies_has_failed_and_the_next_call_runs(lab: Callable[..., Any]) -> None:
    with pytest.raises(CallError) as failed:
        lab("Die")
    assert failed.value.failure.code is ErrorCode.EXECUTION_FAILED
    assert lab("Echo", arguments={"value": "alive"}).value == "alive"


def test_f41_an_answer_over_the_limit_is_a_failure_that_names_the_limit(lab: Callable[..., Any]) -> None:
    with pytest.raises(CallError) as failed:
        lab("Flood", max_answer=10_000)
    assert failed.value.failure.code is ErrorCode.EXECUTION_FAILED
    assert failed.value.failure.details == {"limit": 10_000, "refused": "response_too_large"}
