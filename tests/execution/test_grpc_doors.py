"""The example gRPC service through the public door, and faults on the way there as a caller sees them."""

from __future__ import annotations

import asyncio
import io
import socket
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from django.core.management import CommandError, call_command
from django.test import Client
from grpclib.client import Channel, UnaryUnaryMethod
from grpclib.const import Status
from grpclib.exceptions import GRPCError

from tests.protocols.wire import call, get
from tests.runtimes.sandboxlabs import tool, toolkit
from tests.services.grpcserver import METHOD, Bytes, dies, fails, grpcserver, says, serving
from tests.services.server import free_port, running, scratch

if TYPE_CHECKING:
    from django.contrib.auth.models import User

    from policy.agents import NewAgent
    from registry.models import ToolkitVersion

EXAMPLE = Path(__file__).parents[2] / "examples" / "grpc_service"
MILE = {"length": 1, "from": "mile", "to": "km"}


@pytest.fixture(autouse=True)
def opened(settings: Any) -> None:
    settings.PLACET_EGRESS_ALLOW = ["127.0.0.0/8"]


@pytest.fixture(scope="module")
def service() -> Iterator[int]:
    """The example's service in a process of its own; its port."""
    port = free_port()

    def is_ready() -> bool:
        with socket.socket() as line:
            return line.connect_ex(("127.0.0.1", port)) == 0

    with scratch("grpc") as (folder, reaper):
        command: list[str | Path] = [sys.executable, EXAMPLE / "service.py", "--port", str(port)]
        with running(command, reaper=reaper, log=folder / "log", is_ready=is_ready):
            yield port


@pytest.fixture
def robot(service: int, tmp_path: Path, people: dict[str, User]) -> NewAgent:
    from policy import agents
    from registry.manifests import import_manifest
    from registry.publishing import publish

    manifest = tmp_path / "lengths.yaml"
    manifest.write_text((EXAMPLE / "lengths.yaml").read_text().replace(":50061", f":{service}"))
    publish(import_manifest(manifest, by=people["author"]).version, by=people["author"])
    return agents.create("robot", actor="shell", call=["Lengths"])


@pytest.mark.usefixtures("at_once")
def test_a_grpc_tool_is_called_and_its_attempt_shows_the_traffic(client: Client, robot: NewAgent) -> None:
    answer = call(client, robot, "Lengths.Convert", MILE)
    assert answer.json()["result"]["value"] == {"length": 1.609344, "unit": "km"}
    (row,) = get(client, "/api/calls/", robot).json()["results"]
    (attempt,) = get(client, f"/api/calls/{row['id']}/", robot).json()["attempts"]
    assert (attempt["status"], attempt["upstream_status"]) == ("succeeded", "OK")
    assert attempt["sent"] > 100
    assert attempt["received"] > 50


@pytest.mark.usefixtures("at_once")
def test_what_the_service_says_about_a_wrong_unit_reaches_the_caller(client: Client, robot: NewAgent) -> None:
    answer = call(client, robot, "Lengths.Convert", {**MILE, "to": "hour"})
    assert "to must be one of the units" in answer.content.decode()


def test_the_example_keeps_the_contract(service: int) -> None:
    out = io.StringIO()
    inputs = {"input": '{"length": 1, "from": "mile", "to": "km"}', "fail_input": '{"length": "long"}'}
    call_command("conform", f"grpc://127.0.0.1:{service}", runtime="grpc", stdout=out, **inputs)
    assert "22 passed, 0 failed" in out.getvalue()


@pytest.mark.django_db(transaction=True)
@pytest.mark.usefixtures("at_once")
def test_our_own_grpc_door_keeps_the_contract(lab: ToolkitVersion, monkeypatch: pytest.MonkeyPatch) -> None:
    from execution.grpc.service import ToolService, server
    from policy import agents

    monkeypatch.setenv("PLACET_KEY", agents.create("robot", actor="shell", call=["Lab"]).key)
    ours, out = ToolService(2), io.StringIO()
    options = {"tool": "Lab.Echo", "input": '{"value": 1}', "token_env": "PLACET_KEY", "timeout": 20.0}
    try:
        with serving(lambda: server(ours)) as port:
            call_command("conform", f"grpc://127.0.0.1:{port}", runtime="grpc", stdout=out, **options)
    finally:
        ours.close()
    assert " 0 failed" in out.getvalue()


@pytest.mark.django_db(transaction=True)
@pytest.mark.usefixtures("at_once")
def test_our_own_web_door_keeps_the_contract(
    lab: ToolkitVersion, monkeypatch: pytest.MonkeyPatch, live_server: Any
) -> None:
    from policy import agents

    monkeypatch.setenv("PLACET_KEY", agents.create("robot", actor="shell", call=["Lab"]).key)
    options = {"tool": "Lab.Echo", "input": '{"value": 1}', "token_env": "PLACET_KEY", "timeout": 20.0}
    out = io.StringIO()
    call_command("conform", f"{live_server.url}/contract/v1/execute", runtime="external", stdout=out, **options)
    assert " 0 failed" in out.getvalue()


def test_a_server_that_stops_finishes_what_it_has_and_takes_nothing_new() -> None:
    from execution.grpc.service import ToolService, server

    go, held = threading.Event(), threading.Event()

    def hold(message: bytes, metadata: Any, left: Any) -> bytes:
        held.set()
        go.wait(10)
        return b'"done"'

    async def story() -> None:
        listener = socket.create_server(("127.0.0.1", 0))
        service = ToolService(1, hold)
        running = server(service)
        await running.start(sock=listener)
        async with Channel("127.0.0.1", listener.getsockname()[1], codec=Bytes()) as channel:
            ask = UnaryUnaryMethod[bytes, bytes](channel, METHOD, bytes, bytes)
            first = asyncio.create_task(ask(b"{}"))
            assert await asyncio.to_thread(held.wait, 10)
            draining = asyncio.create_task(service.drained(10))
            await asyncio.sleep(0)
            with pytest.raises(GRPCError) as refused:
                await ask(b"{}")
            assert refused.value.status is Status.UNAVAILABLE
            assert not draining.done()
            go.set()
            assert await first == b'"done"'
            await draining
        running.close()
        await running.wait_closed()
        await asyncio.to_thread(service.close)

    asyncio.run(story())


Attempts = Callable[..., list[str]]


@pytest.fixture
def attempts(client: Client, tmp_path: Path, people: dict[str, User], at_once: None) -> Attempts:
    """The upstream statuses of a call's attempts, for a tool of this idempotency at this endpoint."""
    from policy import agents
    from registry.manifests import import_folder
    from registry.publishing import publish

    def run(endpoint: str, idempotency: str) -> list[str]:
        made = tool("Thing", type="grpc", endpoint=endpoint, retry={"maxAttempts": 3}) | {"idempotency": idempotency}
        toolkit(tmp_path, made, name="Remote")
        for result in import_folder(tmp_path, by=people["author"]):
            publish(result.version, by=people["author"])
        robot = agents.create("caller", actor="shell", call=["Remote"])
        call(client, robot, "Remote.Thing", {})
        (row,) = get(client, "/api/calls/", robot).json()["results"]
        return [each["upstream_status"] for each in get(client, f"/api/calls/{row['id']}/", robot).json()["attempts"]]

    return run


@pytest.mark.parametrize(("idempotency", "times"), [("non_idempotent", 1), ("read", 3)])
@pytest.mark.parametrize(("act", "status"), [(dies, ""), (fails(Status.UNAVAILABLE), "UNAVAILABLE")])
def test_a82_only_a_repeatable_tool_is_asked_again_after_the_first_byte(
    attempts: Attempts, act: Any, status: str, idempotency: str, times: int
) -> None:
    with grpcserver(act) as server:
        assert attempts(server.url, idempotency) == [status] * times
        assert len(server.asked) == times
        assert [each["attempt"] for each in server.asked] == list(range(1, times + 1))


def test_a82_an_answer_that_is_too_large_is_not_asked_for_again(attempts: Attempts) -> None:
    with grpcserver(says(b"x" * 64_000_000)) as server:
        assert len(attempts(server.url, "read")) == 1


def test_where_everyone_may_call_only_this_machine_is_served(settings: Any) -> None:
    settings.PLACET_ANONYMOUS_AGENT = "demo"
    with pytest.raises(CommandError, match="PLACET_ANONYMOUS_AGENT lets anyone call"):
        call_command("serve_grpc", host="0.0.0.0", plaintext=True)
