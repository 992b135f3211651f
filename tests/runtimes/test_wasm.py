"""WebAssembly modules: what they are given, what they may say, and what they cannot do (A79, F49)."""

import codecs
import json
import os
import signal
import subprocess
import sys
import threading
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import wasmtime

from execution.credentials import Credentials
from execution.errors import ErrorCode, Failure
from execution.runtimes import process, wasm, wasmhost
from execution.runtimes.cancel import Cancel
from execution.runtimes.wasmhost import Verdict
from registry import sources
from registry.fields import ManifestError
from registry.manifests import import_folder
from registry.publishing import publish
from registry.toolspec import ToolSpec
from tests.runtimes import sandboxlabs
from tests.runtimes.sandboxes import Sandbox, found
from tests.runtimes.wasm import modules

pytestmark = pytest.mark.django_db

OK = {"contract_version": "v1", "status": "ok", "output": "fine"}


@pytest.fixture
def box(tmp_path: Path) -> Sandbox:
    return Sandbox(tmp_path)


def a_tool(box: Sandbox, code: bytes, **options: Any) -> ToolSpec:
    return box.tool(sandboxlabs.tool("Run", type="wasm", module="t.wasm", **options), {"t.wasm": code})


def failure_of(box: Sandbox, code: bytes, timeout: float = 10.0, **options: Any) -> Failure:
    return box.failure(a_tool(box, code, **options), timeout=timeout)


def direct(module: Path, *, entrypoint: str = "run", seconds: float = 10.0) -> "subprocess.CompletedProcess[bytes]":
    """The child by itself, without the runtime around it."""
    limits = ("1000000", str(64 << 20), str(seconds), str(os.getpid()))
    command = [sys.executable, "-I", wasmhost.__file__, str(module), entrypoint, *limits]
    return subprocess.run(command, env={}, capture_output=True, stdin=subprocess.DEVNULL, timeout=30)


def test_a_loop_without_end_runs_out_of_fuel_and_is_not_tried_again(box: Sandbox) -> None:
    failure = failure_of(box, modules.text('(func (export "run") (loop $l (br $l)))'), fuel=500_000)
    assert (failure.code, failure.can_retry) == (ErrorCode.EXECUTION_FAILED, False)
    assert failure.details == {"limit": 500_000, "resource": "fuel"}


def test_a_loop_with_fuel_for_years_ends_with_its_time(box: Sandbox) -> None:
    tool = a_tool(box, modules.text('(func (export "run") (loop $l (br $l)))'), fuel=10**15)
    began = time.monotonic()
    failure = box.failure(tool, timeout=0.5)
    assert failure.code is ErrorCode.TIMEOUT
    assert failure.details == {"timeout_ms": 500}
    assert time.monotonic() - began < 0.5 + 5
    assert children() == []


def test_a_start_function_has_no_more_time_and_fuel_than_the_rest(box: Sandbox) -> None:
    endless = modules.text('(func $s (loop $l (br $l))) (start $s) (func (export "run"))')
    assert failure_of(box, endless).details["resource"] == "fuel"


def test_memory_grows_to_its_limit_and_no_further(box: Sandbox) -> None:
    is_more = "(i32.ne (memory.grow (i32.const 1)) (i32.const -1))"
    greedy = f'(memory (export "memory") 1) (func (export "run") (loop $l (br_if $l {is_more})) unreachable)'
    failure = failure_of(box, modules.text(greedy), memory="2m")
    assert (failure.code, failure.can_retry) == (ErrorCode.EXECUTION_FAILED, False)
    assert failure.details == {"limit": 2 << 20, "resource": "memory"}


def test_a_module_that_begins_with_too_much_memory_does_not_begin(box: Sandbox) -> None:
    failure = failure_of(box, modules.text('(memory 65536) (func (export "run"))'))
    assert (failure.code, failure.can_retry) == (ErrorCode.EXECUTION_FAILED, False)
    assert failure.details["resource"] == "memory"


@pytest.mark.parametrize(
    "fields",
    [
        '(table 4000000000 funcref) (func (export "run"))',
        " ".join("(table 1 funcref)" for _ in range(100)) + ' (func (export "run"))',
        '(memory 1) (memory 1) (func (export "run"))',
        '(memory 1 2 shared) (func (export "run"))',
    ],
    ids=["a huge table", "many tables", "two memories", "shared memory"],
)
def test_more_than_a_module_needs_is_refused(box: Sandbox, fields: str) -> None:
    error = box.error(a_tool(box, modules.text(fields)))
    assert error.failure.code in (ErrorCode.RUNTIME_INVALID, ErrorCode.EXECUTION_FAILED)
    assert not error.failure.can_retry


def test_a_table_grows_to_its_limit_and_no_further(box: Sandbox) -> None:
    grown = "(i32.ne (table.grow $t (ref.null func) (i32.const 200000)) (i32.const -1))"
    module = modules.says(json.dumps(OK), f"(if {grown} (then unreachable))", also="(table $t 1 funcref)")
    assert box.run(a_tool(box, module)).value == "fine"


def test_a_million_imports_are_refused_in_time(box: Sandbox) -> None:
    began = time.monotonic()
    error = box.error(a_tool(box, modules.many_imports(1_000_000)), timeout=10.0)
    assert (error.code, error.is_sent) == (ErrorCode.RUNTIME_INVALID, False)
    assert time.monotonic() - began < 15


def test_a_module_that_takes_too_long_to_compile_is_killed(box: Sandbox) -> None:
    tool = a_tool(box, modules.slow_to_compile(900_000))
    began = time.monotonic()
    assert box.failure(tool, timeout=0.3).code is ErrorCode.TIMEOUT
    assert time.monotonic() - began < 0.3 + 5


@pytest.mark.parametrize("function", ["path_open", "fd_prestat_get", "sock_accept"])
def test_there_is_no_folder_and_no_socket_to_reach(box: Sandbox, function: str) -> None:
    bad_descriptor = 8
    first, *others = modules.WASI[function].split()
    module = modules.probe(
        (function,), f"(call ${function} ({first}.const 3) {' '.join(f'({of}.const 0)' for of in others)})"
    )
    assert box.run(a_tool(box, module)).value == 10 + bad_descriptor


@pytest.mark.parametrize("function", ["environ_sizes_get", "args_sizes_get"])
def test_there_is_no_environment_and_there_are_no_arguments(box: Sandbox, function: str) -> None:
    count = f"(block (result i32) (drop (call ${function} (i32.const 16) (i32.const 20))) (i32.load (i32.const 16)))"
    assert box.run(a_tool(box, modules.probe((function,), count))).value == 10


@pytest.mark.parametrize("name", ["env.system", "wasi_snapshot_preview1.no_such", "wasi_unstable.fd_write"])
def test_an_import_that_nobody_gives_is_refused(box: Sandbox, name: str) -> None:
    module, function = name.split(".")
    error = box.error(a_tool(box, modules.text(f'(import "{module}" "{function}" (func)) (func (export "run"))')))
    assert (error.code, error.is_sent) == (ErrorCode.RUNTIME_INVALID, False)
    assert function in error.failure.developer_message


@pytest.mark.parametrize(
    "content",
    [b"", b"(module)", b"\0asm\1\0\0\0\xff", b"\0asm\x0d\0\1\0", b"\x7fELF" + bytes(64)],
    ids=["empty", "text", "broken", "component", "another program"],
)
def test_a_file_that_is_no_module_is_refused(box: Sandbox, content: bytes) -> None:
    assert failure_of(box, content).code is ErrorCode.RUNTIME_INVALID


def test_a_module_of_100_megabytes_does_not_get_in(tmp_path: Path, box: Sandbox) -> None:
    with pytest.raises(ManifestError, match="5000000 bytes"):
        a_tool(box, modules.HEAD + bytes(100_000_000))
    with (tmp_path / "large.wasm").open("wb") as file:
        file.write(modules.HEAD)
        file.truncate(wasmhost.MAX_MODULE + 1)
    assert direct(tmp_path / "large.wasm").returncode == Verdict.TOO_LARGE


def test_a_module_that_is_not_among_the_files_is_named(box: Sandbox) -> None:
    tool = a_tool(box, modules.HEAD)
    runtime = replace(
        tool.runtime, options={**tool.runtime.options, "module": "other.wasm"}
    )  # as no manifest could say
    error = box.error(replace(tool, runtime=runtime))
    assert (error.code, error.is_sent) == (ErrorCode.RUNTIME_INVALID, False)
    assert "other.wasm" in error.failure.developer_message


@pytest.mark.parametrize(
    "exported", ['(func (export "other"))', '(memory (export "run") 1)', '(func (export "run") (param i32))']
)
def test_an_entrypoint_that_cannot_be_called_is_refused(box: Sandbox, exported: str) -> None:
    failure = failure_of(box, modules.text(exported))
    assert failure.code is ErrorCode.RUNTIME_INVALID
    assert "'run'" in failure.developer_message


@pytest.mark.parametrize(
    "said",
    [
        "",
        "\n ",
        "fine",
        '{"contract_version":"v1","status":"ok"',
        "[]",
        '{"status":"ok","output":"x"}',
        '{"contract_version":"v2","status":"ok","output":"x"}',
        '{"contract_version":"v1","status":"queued"}',
        '{"contract_version":"v1","output":"x"}',
        '{"contract_version":"v1","status":["ok"]}',
        '{"contract_version":"v1","status":"ok","error":{"code":"x"}}',
        '{"contract_version":"v1","status":"error","error":"no"}',
        '{"contract_version":"v1","status":"ok","status":"denied"}',
        b"\xff\xfe",
    ],
)
def test_a_reply_outside_the_contract_is_said_to_be_so(box: Sandbox, said: str | bytes) -> None:
    failure = failure_of(box, modules.says(said))
    assert (failure.code, failure.can_retry) == (ErrorCode.RUNTIME_INVALID, False)


def test_an_output_may_be_any_json(box: Sandbox) -> None:
    for output in ("text", 3, None, [1, {"a": True}], {"a": 1}):
        assert box.run(a_tool(box, modules.replies(status="ok", output=output))).value == output


def test_a_failure_without_words_gets_those_of_its_status(box: Sandbox) -> None:
    failed = failure_of(box, modules.replies(status="error"))
    assert (failed.code, failed.can_retry) == (ErrorCode.EXECUTION_FAILED, True)
    denied = failure_of(box, modules.replies(status="denied"))
    assert (denied.code, denied.can_retry) == (ErrorCode.PERMISSION_DENIED, False)
    assert denied.details["module_status"] == "denied"
    assert denied.details["isolation_mode"] == "wasm"
    assert denied.details["contract_version"] == "v1"


def test_the_words_of_a_failure_are_the_modules(box: Sandbox) -> None:
    error = {"code": "invalid_input", "message": "no such city", "retryable": False, "details": {"field": "city"}}
    failure = failure_of(box, modules.replies(status="error", error=error))
    assert (failure.code, failure.message, failure.can_retry) == (ErrorCode.INVALID_INPUT, "no such city", False)
    assert failure.details["field"] == "city"


def test_a_module_may_exit_and_its_number_says_how(box: Sandbox) -> None:
    leave = '(import "wasi_snapshot_preview1" "proc_exit" (func $exit (param i32)))'
    good = modules.says(json.dumps(OK), "(call $exit (i32.const 0))", also=leave)
    assert box.run(a_tool(box, good)).value == "fine"
    failure = failure_of(box, modules.says(json.dumps(OK), "(call $exit (i32.const 3))", also=leave))
    assert (failure.code, failure.can_retry) == (ErrorCode.EXECUTION_FAILED, True)
    assert "3" in failure.developer_message


def test_output_without_end_is_cut(box: Sandbox) -> None:
    again = "(loop $l (drop (call $fd_write (i32.const 1) (i32.const 0) (i32.const 1) (i32.const 8))) (br $l))"
    tool = a_tool(box, modules.says("x" * 60_000, again), fuel=10**15)
    began = time.monotonic()
    failure = box.failure(tool, max_answer=200_000)
    assert failure.code is ErrorCode.EXECUTION_FAILED
    assert failure.details == {"limit": 200_000, "refused": "response_too_large"}
    assert time.monotonic() - began < 10
    assert children() == []


def test_what_a_module_writes_to_standard_error_becomes_log_lines(box: Sandbox) -> None:
    complain = (
        "(i32.store (i32.const 4) (i32.const 16))"
        "(drop (call $fd_write (i32.const 2) (i32.const 0) (i32.const 1) (i32.const 8)))"
    )
    box.run(a_tool(box, modules.says(json.dumps(OK), complain)))
    assert box.news == ['{"contract_versi']


def test_the_request_names_what_the_contract_names(box: Sandbox) -> None:
    tool = a_tool(box, modules.HEAD, fuel=77, memory="1m")
    credentials = Credentials(profile="bearer", secret_ref="key", headers={"Authorization": "Bearer s3cr3t-value"})
    request = wasm.request_of(box.invocation(tool, arguments={"a": "ä"}, credentials=credentials))
    assert request == {
        "contract_version": "v1",
        "namespace": "default",
        "tool": tool.flat_name,
        "input": '{"a":"ä"}',
        "capabilities": [],
        "risk_level": "low",
        "runtime": {"entrypoint": "run", "max_memory_bytes": 1 << 20, "fuel": 77, "enable_wasi": True},
        "auth": {"profile": "bearer", "headers": {"Authorization": "Bearer s3cr3t-value"}},
    }
    assert "auth" not in wasm.request_of(box.invocation(tool))


def test_the_child_has_an_empty_environment_and_nothing_open_of_ours(
    box: Sandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CANARY_IN_THE_ENVIRONMENT", "1")
    tool = a_tool(box, modules.text('(func (export "run") (loop $l (br $l)))'), fuel=10**15)
    sources.unpack(tool.runtime.options["source"])  # another thread does not see what this one has not committed
    cancel, ours = Cancel(), os.open("/etc/hostname", os.O_RDONLY)
    os.set_inheritable(ours, True)
    threading.Timer(20, cancel.set).start()
    running = threading.Thread(target=box.error, args=(tool,), kwargs={"cancel": cancel})
    running.start()
    try:
        child = next(iter(children(patience=10)))
        assert Path(f"/proc/{child}/environ").read_bytes() == b""
        assert b"CANARY" not in Path(f"/proc/{child}/cmdline").read_bytes()
        opened = {os.readlink(f"/proc/{child}/fd/{fd}") for fd in os.listdir(f"/proc/{child}/fd")}
        assert "/etc/hostname" not in opened
    finally:
        cancel.set()
        running.join(10)
        os.close(ours)
    assert children() == []


def test_a_child_ends_with_its_parent(tmp_path: Path) -> None:
    (tmp_path / "t.wasm").write_bytes(modules.text('(func (export "run") (loop $l (br $l)))'))
    script = f"""
import os, subprocess, sys
child = subprocess.Popen([sys.executable, "-I", {wasmhost.__file__!r}, {str(tmp_path / "t.wasm")!r}, "run",
    str(10**15), str(1 << 26), "60", str(os.getpid())], env={{}}, stdin=subprocess.DEVNULL)
print(child.pid, flush=True)
sys.stdin.read()
"""
    parent = subprocess.Popen([sys.executable, "-c", script], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert parent.stdin is not None
    assert parent.stdout is not None
    with parent.stdin, parent.stdout:
        child = int(parent.stdout.readline())
        time.sleep(0.5)
        assert Path(f"/proc/{child}").exists()
        parent.send_signal(signal.SIGKILL)
        parent.wait(5)
    until = time.monotonic() + 10
    while is_running(child):
        assert time.monotonic() < until
        time.sleep(0.05)


def test_a_cancelled_call_starts_nothing(box: Sandbox, monkeypatch: pytest.MonkeyPatch) -> None:
    tool = a_tool(box, modules.replies(status="ok"))
    monkeypatch.setattr(wasm, "Conversation", must_not_start)
    cancel = Cancel()
    cancel.set()
    error = box.error(tool, cancel=cancel)
    assert (error.code, error.is_sent) == (ErrorCode.CANCELED, False)


def test_without_wasmtime_nothing_runs(box: Sandbox, monkeypatch: pytest.MonkeyPatch) -> None:
    tool = a_tool(box, modules.replies(status="ok"))
    monkeypatch.setattr(wasm, "Conversation", must_not_start)
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    error = box.error(tool)
    assert (error.code, error.is_sent, error.code.http) == (ErrorCode.ISOLATION_MISSING, False, 503)


def test_a_child_that_cannot_be_walled_in_does_not_run(box: Sandbox, monkeypatch: pytest.MonkeyPatch) -> None:
    tool = a_tool(box, modules.replies(status="ok"))
    monkeypatch.setattr(os, "getpid", lambda: 1)  # so the child does not find the parent it was promised
    error = box.error(tool)
    assert (error.code, error.is_sent) == (ErrorCode.ISOLATION_MISSING, False)


def test_the_example_is_what_its_text_says_and_runs(box: Sandbox) -> None:
    folder = Path(__file__).parents[2] / "examples" / "wasm_tool"
    code = (folder / "letters.wasm").read_bytes()
    assert code == wasmtime.wat2wasm((folder / "letters.wat").read_text())
    for result in import_folder(folder, by=None):
        publish(result.version, by=None)
    tool = found("Letters.Rot13")
    said = 'Hello, "World"! \\ [a{z}A]Z@`'
    assert box.run(tool, arguments={"text": said}).value == codecs.encode(said, "rot13")
    assert box.run(tool, arguments={"text": '"' * 4000}).value == '"' * 4000
    assert box.run(tool, arguments={"text": ""}).value == ""


def must_not_start(*_: Any) -> process.Conversation:
    raise AssertionError("a process was started")


def children(patience: float = 0.0) -> list[int]:
    """Our own children that run modules; waits for one if asked to."""
    until = time.monotonic() + patience
    while True:
        found = []
        for task in os.listdir("/proc/self/task"):
            for pid in Path(f"/proc/self/task/{task}/children").read_text().split():
                if b"wasmhost" in Path(f"/proc/{pid}/cmdline").read_bytes():
                    found.append(int(pid))
        if found or time.monotonic() >= until:
            return found
        time.sleep(0.05)


def is_running(pid: int) -> bool:
    """Whether a process lives; one that only waits to be buried does not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False
