"""The canary sweep over every runtime that is sent a secret: each spills it in its own way, and none gets it out.

The control run with the redactor off must find each runtime's canary, or its line here would prove nothing.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import ExitStack
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any

import pytest
from guardian.shortcuts import assign_perm

from audit.redaction import Redactor
from execution.models import Call
from policy.models import Agent
from registry.manifests import import_folder
from registry.models import Toolkit
from registry.publishing import publish
from tests.execution.canaries import ENCODINGS, canary
from tests.execution.secretkit import Loopback, keep
from tests.execution.test_canaries import Sweep, sweep
from tests.needs import lack_of
from tests.runtimes import sandboxlabs
from tests.runtimes.wasm import modules
from tests.services.grpcserver import GrpcServer, grpcserver
from tests.services.mcpserver import FakeMcp, fake_mcp
from tests.services.toolserver import Session

__all__ = ["sweep"]

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("at_once")]

SPEAKING = ("external", "webhook-callback", "grpc", "mcp")  # these can say it in every encoding
PARROT = (
    modules.wasi("fd_read", "fd_write"),
    '(memory (export "memory") 2)',
    r'(data (i32.const 64) "{\"contract_version\":\"v1\",\"status\":\"ok\",\"output\":")',
    '(data (i32.const 128) "}")',
    "(func $say (param $at i32) (param $long i32)",
    "(i32.store (i32.const 0) (local.get $at)) (i32.store (i32.const 4) (local.get $long))",
    "(drop (call $fd_write (i32.const 1) (i32.const 0) (i32.const 1) (i32.const 8))))",
    '(func (export "run") (call $say (i32.const 64) (i32.const 48))',
    "(block $over (loop $more",
    "(i32.store (i32.const 0) (i32.const 1024)) (i32.store (i32.const 4) (i32.const 60000))",
    "(br_if $over (call $fd_read (i32.const 0) (i32.const 0) (i32.const 1) (i32.const 16)))",
    "(br_if $over (i32.eqz (i32.load (i32.const 16))))",
    "(call $say (i32.const 1024) (i32.load (i32.const 16))) (br $more)))",
    "(call $say (i32.const 128) (i32.const 1)))",
)


def runtimes() -> list[str]:
    return [*SPEAKING, "wasm", *([] if lack_of("podman") else ["container"])]


def secret_of(runtime: str) -> str:
    """Letters that gRPC's metadata can hold too."""
    return canary(f"resolved for {runtime}").replace("ü", "u")


def spilled(authorization: str) -> list[str]:
    sent = authorization.partition(" ")[2]
    return [encode(sent) for encode in ENCODINGS.values()]


def contract(request: BaseHTTPRequestHandler, body: bytes) -> tuple[int, Any]:
    return 200, {"status": "ok", "output": {"result": spilled(request.headers["Authorization"])}}


async def remote(server: GrpcServer, stream: Any, asked: Any) -> None:
    told = {"status": "ok", "output": {"result": spilled(server.metadata[-1]["authorization"])}}
    await stream.send_message(json.dumps(told).encode())


def upstream(server: FakeMcp, session: Session, asked: Any) -> None:
    texts = spilled(session.asked.headers["Authorization"])
    server.respond(session, asked, {"content": [{"type": "text", "text": text} for text in texts]})


@pytest.fixture
def everywhere(sweep: Sweep, tmp_path: Path) -> Iterator[Sweep]:
    """One tool for each runtime, each sent a secret of its own."""
    with ExitStack() as stack:
        web = stack.enter_context(Loopback(contract))
        grpc = stack.enter_context(grpcserver(remote))
        mcp = stack.enter_context(fake_mcp())
        mcp.call = upstream
        bindings: dict[str, dict[str, Any]] = {
            "external": {"endpoint": web.url},
            "webhook-callback": {"endpoint": web.url},
            "grpc": {"endpoint": f"grpc://127.0.0.1:{grpc.port}"},
            "mcp": {"endpoint": mcp.endpoint, "tool": "thing"},
            "wasm": {"module": "parrot.wasm"},
        }
        if "container" in runtimes():
            script = 'echo "$TOOL_AUTH_BEARER"; echo "$TOOL_AUTH_BEARER" >&2'
            bindings["container"] = {"image": sandboxlabs.image(), "command": ["sh", "-c", script]}
        for runtime, binding in bindings.items():
            _publish(tmp_path / runtime, runtime, binding)
        yield sweep


def name_of(runtime: str) -> str:
    return f"Parrot{runtime.partition('-')[0].capitalize()}"


def _publish(folder: Path, runtime: str, binding: dict[str, Any]) -> None:
    folder.mkdir()
    keep(f"key-{runtime}", secret_of(runtime))
    tool = sandboxlabs.tool("Speak", type=runtime, timeout="20s", **binding)
    auth = {"profile": "bearer", "secretRef": f"key-{runtime}"}
    sandboxlabs.toolkit(folder, {**tool, "idempotency": "read", "auth": auth}, name=name_of(runtime))
    if runtime == "wasm":
        (folder / "parrot.wasm").write_bytes(modules.text(*PARROT))
    (imported,) = import_folder(folder, by=None)
    publish(imported.version, by=None)
    agent = Agent.objects.get(name="tester")
    assign_perm("registry.call_toolkit", agent.user, Toolkit.objects.get(name=name_of(runtime)))


def run(sweep: Sweep) -> None:
    for runtime in runtimes():
        sweep.spilled += [(name, secret_of(runtime)) for name in ENCODINGS]
        sweep.call("contract", f"{name_of(runtime)}.Speak", {})
    sweep.collect()


def test_no_runtime_gets_its_secret_out(everywhere: Sweep) -> None:
    run(everywhere)
    assert everywhere.cells() == set()
    assert everywhere.cores() == set()
    ended = dict(Call.objects.values_list("tool_ref", "state"))
    assert ended == {f"{name_of(runtime)}.Speak@1.0.0": "succeeded" for runtime in runtimes()}
    answers = everywhere.sinks.bytes("contract answers").decode()
    assert all(f"[REDACTED:key-{runtime}" in answers for runtime in runtimes())


def test_with_the_redactor_off_every_runtime_gets_its_secret_out(
    everywhere: Sweep, monkeypatch: pytest.MonkeyPatch
) -> None:
    def unchanged(self: Redactor, value: Any, schema: Any = None) -> Any:
        return value

    for name in ("for_people", "for_deciders", "for_caller", "text"):
        monkeypatch.setattr(Redactor, name, unchanged)
    run(everywhere)
    answers = everywhere.sinks.bytes("contract answers").decode()
    assert all(secret_of(runtime)[:16] in answers for runtime in runtimes())
    wanted = {(name, sink) for name in ENCODINGS for sink in ("rows", "contract answers", "call pages")}
    missed = wanted - everywhere.cells()
    assert len(missed) <= len(wanted) // 10, sorted(missed)
