"""Containers: the walls around them, what comes out of them, and that none is left (A22, A80, A81, F49)."""

import hashlib
import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from execution.credentials import Credentials
from execution.errors import CallError, ErrorCode
from execution.runtimes import container, engine, owner
from execution.runtimes.cancel import Cancel
from execution.runtimes.engine import Engine, Order
from registry.manifests import import_manifest
from registry.publishing import publish
from registry.toolspec import ToolSpec
from tests.runtimes import sandboxlabs
from tests.runtimes.sandboxes import Sandbox, found

pytestmark = [pytest.mark.django_db, pytest.mark.needs("podman")]

SECRET = "s3cr3t-of-the-tool-77"
BEARER = Credentials(
    profile="bearer", secret_ref="key", environment={"TOOL_AUTH_BEARER": SECRET}, needles={"key": SECRET}
)


@pytest.fixture
def box(tmp_path: Path) -> Sandbox:
    return Sandbox(tmp_path)


def a_tool(box: Sandbox, script: str, **limits: Any) -> ToolSpec:
    return box.tool(sandboxlabs.shell("Run", script, **limits))


def ours() -> list[str]:
    """The containers of this process that there are now."""
    mark = f"label={engine.LABEL}={owner.mark()}"
    return _podman("ps", "--all", "--filter", mark, "--format", "{{.Names}}").split()


def assert_none_left() -> None:
    until = time.monotonic() + 15
    while ours():
        assert time.monotonic() < until, "a container was left behind"
        time.sleep(0.1)


def _podman(*words: str) -> str:
    return subprocess.run(["podman", *words], capture_output=True, check=True, timeout=60, text=True).stdout


def test_a_container_can_do_nothing_but_think(box: Sandbox, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CANARY_IN_THE_ENVIRONMENT", "1")
    look = (
        "id; touch /x /bin/x /run/x /dev/x; touch /tmp/x && echo tmp is writable;"
        "cat /bin/busybox >/tmp/b; /bin/busybox chmod +x /tmp/b; /tmp/b true && echo tmp is executable;"
        "ip -o link; env; cat /proc/self/status; ulimit -n; ulimit -c; ls /"
    )
    seen = box.run(a_tool(box, f"{{ {look}; }} 2>&1")).value
    assert "uid=65532(65532) gid=65532(65532) groups=65532(65532)" in seen
    assert seen.count("Read-only file system") == 3
    assert "touch: /dev/x: Permission denied" in seen
    assert "tmp is writable" in seen
    assert "tmp is executable" not in seen
    assert "lo:" in seen
    assert "eth" not in seen
    assert "CapEff:\t0000000000000000" in seen
    assert "CapBnd:\t0000000000000000" in seen
    assert "NoNewPrivs:\t1" in seen
    assert "\n1024\n0\n" in seen
    assert "CANARY" not in seen
    assert "PLACET" not in seen


def test_the_request_is_the_contracts_and_what_it_holds_arrives_literally(box: Sandbox) -> None:
    cruel = "$(touch /tmp/x) `id` ; | & > < * ? ~ ' \" \\ \n -v/:/host --privileged ä"
    request = box.run(a_tool(box, "cat"), arguments={"value": cruel}, attempt=3, credentials=BEARER).value
    assert request["tool_contract_version"] == "v1"
    assert (request["request_id"], request["attempt"]) == ("c-1", 3)
    assert request["input"] == {"value": cruel}
    assert request["auth"]["secret_ref"] == "key"
    assert SECRET not in json.dumps(request)


def test_the_words_of_a_command_are_never_read_by_a_shell(box: Sandbox) -> None:
    words = ["/bin/busybox", "echo", "$(id)", ";", "|", "-v/:/host", "--privileged", "*"]
    made = sandboxlabs.tool("Run", type="container", image=sandboxlabs.image(), command=words)
    assert box.run(box.tool(made)).value == "$(id) ; | -v/:/host --privileged *"


def test_a_credential_is_in_the_containers_environment_and_in_no_argument(box: Sandbox) -> None:
    assert box.run(a_tool(box, "echo got $TOOL_AUTH_BEARER"), credentials=BEARER).value == f"got {SECRET}"
    order = Order(
        name="placet-x", image="i", command=(), memory="1m", cpus=1, pids=1, variables=["TOOL_AUTH_BEARER"], seconds=1
    )
    command = Engine("podman", "/usr/bin/podman").run(order)
    assert command[command.index("TOOL_AUTH_BEARER") - 1] == "--env"
    assert not any("=" in word for word in command if "TOOL_AUTH" in word)


@pytest.mark.parametrize(
    ("script", "value"),
    [
        ("echo ' hello '", "hello"),
        ("true", None),
        ("echo '[1, {\"a\": null}]'", [1, {"a": None}]),
        ('echo \'{"status":"queued"}\'', {"status": "queued"}),
        ('echo \'{"status":["ok"]}\'', {"status": ["ok"]}),
        ('echo \'{"status":"ok","output":{"n":1}}\'', {"n": 1}),
        ("exec 0<&-; echo deaf", "deaf"),
    ],
)
def test_a_text_json_or_a_response_comes_back(box: Sandbox, script: str, value: Any) -> None:
    assert box.run(a_tool(box, script)).value == value


def test_an_answer_that_is_no_text_is_a_failure(box: Sandbox) -> None:
    assert box.failure(a_tool(box, "head -c 100 /dev/zero")).code is ErrorCode.EXECUTION_FAILED


def test_a_stuck_container_is_abandoned_at_its_limit_and_killed_soon_after(box: Sandbox) -> None:
    tool = a_tool(box, "trap '' TERM INT HUP; while :; do sleep 60; done")
    for timeout in (0.05, 2.0):  # while it is being made, and while it runs
        began = time.monotonic()
        failure = box.failure(tool, timeout=timeout)
        assert time.monotonic() - began < timeout + 0.5
        assert failure.code is ErrorCode.TIMEOUT
        assert_none_left()


def test_a_cancellation_kills_the_container(box: Sandbox) -> None:
    tool, cancel = a_tool(box, "echo begun >&2; sleep 60"), Cancel()
    threading.Timer(1.5, cancel.set).start()
    error = box.error(tool, cancel=cancel)
    assert error.code is ErrorCode.CANCELED
    assert error.is_sent
    assert_none_left()


@pytest.mark.parametrize("script", ["yes", "yes >&2", "cat /dev/zero"])
def test_output_without_end_is_cut_and_the_container_killed(box: Sandbox, script: str) -> None:
    failure = box.failure(a_tool(box, script), max_answer=100_000)
    assert failure.code is ErrorCode.EXECUTION_FAILED
    assert failure.details["refused"] == "response_too_large"
    assert_none_left()


def test_what_a_container_complains_of_is_told_redacted_and_then_cut(box: Sandbox) -> None:
    many = "i=0; while [ $i -lt 20 ]; do i=$((i+1)); echo line $i $TOOL_AUTH_BEARER >&2; done; exit 3"
    failure = box.failure(a_tool(box, many), credentials=BEARER)
    assert (failure.code, failure.can_retry) == (ErrorCode.EXECUTION_FAILED, True)
    assert failure.details == {"exit_code": 3}
    assert "line 20 [REDACTED:key:" in failure.developer_message
    assert len(failure.developer_message) <= 400
    assert SECRET[4:] not in failure.developer_message
    assert len(box.news) == 20


@pytest.mark.parametrize("command", [["/no/such/program"], ["/etc"]])
def test_a_command_that_cannot_be_run_is_the_toolkits_fault(box: Sandbox, command: list[str]) -> None:
    made = sandboxlabs.tool("Run", type="container", image=sandboxlabs.image(), command=command)
    failure = box.failure(box.tool(made))
    assert failure.code is ErrorCode.RUNTIME_INVALID
    assert failure.details["exit_code"] in (126, 127)


def test_an_image_that_is_not_here_is_not_fetched(box: Sandbox) -> None:
    made = sandboxlabs.tool("Run", type="container", image="localhost/placet-tests@sha256:" + "0" * 64)
    error = box.error(box.tool(made))
    assert (error.code, error.is_sent) == (ErrorCode.RUNTIME_INVALID, False)
    assert "image" in error.failure.message


def test_a_tool_that_ends_with_the_engines_number_may_have_run(box: Sandbox) -> None:
    error = box.error(a_tool(box, "exit 125"))
    assert (error.code, error.is_sent) == (ErrorCode.EXECUTION_FAILED, True)


def test_who_wants_too_much_memory_is_killed_alone(box: Sandbox) -> None:
    hog = a_tool(box, "exec /bin/busybox sh -c 'x=x; while :; do x=$x$x; done'", memory="16m")
    failure = box.failure(hog)
    assert (failure.code, failure.can_retry) == (ErrorCode.EXECUTION_FAILED, False)
    assert failure.details == {"exit_code": 137, "limit": 16 << 20, "resource": "memory"}
    assert box.run(a_tool(box, "echo alive")).value == "alive"


@pytest.mark.parametrize(
    ("script", "sign"),
    [
        ("f() { f | f & }; f; sleep 1; (true) && echo one more", "can't fork"),
        ("i=3; while [ $i -lt 2000 ]; do eval \"exec $i</bin/sh\" || exit 4; i=$((i+1)); done", "files"),
        ("cat /dev/zero >/tmp/x", "No space left"),
    ],
    ids=["forks", "files", "disk"],
)  # fmt: skip
def test_a_container_that_exhausts_what_it_has_fails_alone(box: Sandbox, script: str, sign: str) -> None:
    tool = a_tool(box, script, pids=16)
    with suppress(CallError):
        box.run(tool, timeout=8.0)
    assert any(sign in line for line in box.news)
    assert box.run(a_tool(box, "echo alive")).value == "alive"
    assert_none_left()


def test_containers_of_dead_processes_are_swept_and_those_of_living_ones_stay() -> None:
    dead = subprocess.Popen(["/bin/true"])
    mark = owner.mark(dead.pid)
    dead.wait()
    assert owner.is_gone(mark)
    marks = {
        "placet-orphan": mark,
        "placet-living": owner.mark(),
        "other-orphan": mark,
        "placet-foreign": f"x.1.{mark}",
    }
    found = engine.find("podman")
    try:
        for name, label in marks.items():
            of_test = ("--network", "none", "--label", f"{engine.LABEL}={label}", "--name", name)
            _podman("create", *of_test, sandboxlabs.image(), "true")
        assert found.strays() == ["placet-orphan"]
        container.sweep(found)
        left = _podman("ps", "--all", "--format", "{{.Names}}").split()
        assert {"placet-living", "other-orphan", "placet-foreign"} <= set(left)
        assert "placet-orphan" not in left
    finally:
        for name in marks:
            subprocess.run(["podman", "rm", "--force", "--ignore", name], capture_output=True, timeout=60)


def test_a_cancelled_call_starts_nothing(box: Sandbox, monkeypatch: pytest.MonkeyPatch) -> None:
    tool, cancel = a_tool(box, "true"), Cancel()
    monkeypatch.setattr(container, "Conversation", _must_not_start)
    cancel.set()
    error = box.error(tool, cancel=cancel)
    assert (error.code, error.is_sent) == (ErrorCode.CANCELED, False)


def _must_not_start(*_: Any) -> Callable[..., Any]:
    raise AssertionError("a process was started")


def test_the_example_is_built_without_a_registry_and_runs(box: Sandbox, tmp_path: Path) -> None:
    script = Path(__file__).parents[2] / "examples" / "container_tool" / "build.py"
    manifest = tmp_path / "digest.yaml"
    subprocess.run([sys.executable, script, "--manifest", manifest], check=True, capture_output=True, timeout=60)
    publish(import_manifest(manifest, by=None).version, by=None)
    answer = box.run(found("Digest.Sha256"), arguments={"text": "Hello, world!"})
    assert answer.value == hashlib.sha256(b"Hello, world!").hexdigest()


def test_the_client_learns_nothing_of_our_surroundings(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DATABASE_URL", "postgres://u:p@h/d")
    monkeypatch.setenv("PLACET_SECRET_KEY", "x")
    monkeypatch.setenv("HTTPS_PROXY", "http://proxy")
    assert not {"DATABASE_URL", "PLACET_SECRET_KEY", "HTTPS_PROXY"} & set(engine.surroundings())
    assert engine.surroundings()["PATH"] == os.environ["PATH"]
