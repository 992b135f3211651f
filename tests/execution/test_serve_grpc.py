"""Placet as a gRPC service: what a contract client sends, what it gets, and what it cannot do to us."""

from __future__ import annotations

import asyncio
import os
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import orjson
import pytest
from django.core.management import CommandError, call_command
from grpclib.client import Channel, UnaryUnaryMethod
from grpclib.const import Status
from grpclib.exceptions import GRPCError
from h2.connection import H2Connection
from h2.events import ResponseReceived, TrailersReceived

from tests.services.certificate import write_certificate
from tests.services.grpcserver import METHOD, Bytes, serving

if TYPE_CHECKING:
    from policy.agents import NewAgent
    from registry.models import ToolkitVersion

ROOT = Path(__file__).parents[2]
Ask = Callable[..., Any]


@pytest.fixture
def robot(lab: ToolkitVersion) -> NewAgent:
    from policy import agents

    return agents.create("robot", actor="shell", call=["Lab"])


@pytest.fixture
def ask(robot: NewAgent) -> Ask:
    """Through the door, without a wire."""
    from execution.grpc import door

    def make(tool: str = "Lab_Echo", **fields: Any) -> Any:
        body = {"request_id": "r-1", "tool": {"name": tool}, **fields}
        return orjson.loads(door.execute(orjson.dumps(body), {"authorization": f"Bearer {robot.key}"}))

    return make


@pytest.mark.usefixtures("at_once")
def test_a_request_is_answered_with_a_response_of_the_contract(ask: Ask) -> None:
    from execution.models import Call

    trace = {"trace_id": "t-1", "span_id": "s-1"}
    answer = ask(tool_contract_version="v1", input={"value": {"a": "ä"}}, trace=trace)
    assert (answer["status"], answer["output"], answer["trace"]) == ("ok", {"a": "ä"}, trace)
    assert (answer["request_id"], answer["tool_contract_version"], answer["usage"]["attempt"]) == ("r-1", "v1", 1)
    assert Call.objects.get().door == "grpc"


@pytest.mark.usefixtures("at_once")
def test_a_request_id_that_comes_again_gets_the_answer_it_had(ask: Ask, tmp_path: Path) -> None:
    first, again = (ask("Lab_Ring", input={"ledger": str(tmp_path / "ledger")}) for _ in range(2))
    assert first["output"] == again["output"]
    assert len((tmp_path / "ledger").read_text().splitlines()) == 1


@pytest.mark.usefixtures("at_once")
@pytest.mark.parametrize(
    ("tool", "given", "status", "code"),
    [
        ("Lab_Nothing", {}, "error", "unsupported_tool"),
        ("Lab_Ring", {"ledger": 7}, "error", "invalid_input"),
        ("Lab_Launch", {}, "error", "approval_pending"),
        ("Lab_Fail", {"message": "No such thing"}, "error", "execution_failed"),
    ],
)
def test_each_failure_is_an_envelope(ask: Ask, tool: str, given: dict[str, Any], status: str, code: str) -> None:
    answer = ask(tool, input=given)
    assert (answer["status"], answer["error"]["code"]) == (status, code)
    assert set(answer["error"]) == {"code", "reason", "retryable", "message", "details"}


def test_a_denial_says_so_and_names_its_rule(ask: Ask) -> None:
    from policy import revisions
    from policy.decision import Effect
    from policy.rulespec import RuleSpec

    house = RuleSpec(name="the house rule", tools=("Lab.*",), effect=Effect.DENY)
    revisions.activate(revisions.new_draft(by=None, rules=[house]), by=None)
    answer = ask(input={"value": 1})
    assert (answer["status"], answer["error"]["code"]) == ("denied", "permission_denied")
    assert (answer["error"]["retryable"], answer["error"]["details"]["rule"]) == (False, "the house rule")


def test_a_tool_that_the_caller_may_not_see_is_none(lab: ToolkitVersion) -> None:
    from execution.grpc import door
    from policy import agents

    stranger = agents.create("stranger", actor="shell")
    body = orjson.dumps({"request_id": "r", "tool": {"name": "Lab_Echo"}})
    answer = orjson.loads(door.execute(body, {"oxp-api-key": stranger.key}))
    assert answer["error"]["code"] == "unsupported_tool"


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"tool_contract_version": "v2", "request_id": "r", "tool": {"name": "x"}}, "tool_contract_version"),
        ({"tool": {"name": "x"}}, "request_id"),
        ({"request_id": "r"}, "tool.name"),
    ],
)
def test_1_2_3_what_the_contract_requires_is_named(robot: NewAgent, body: dict[str, Any], field: str) -> None:
    from audit.models import Event
    from execution.grpc import door

    answer = orjson.loads(door.execute(orjson.dumps(body), {"authorization": f"Bearer {robot.key}"}))
    assert (answer["error"]["code"], answer["error"]["details"]["field"]) == ("invalid_input", field)
    refused = Event.objects.filter(event="request.refused").latest("id")
    assert orjson.loads(refused.detail)["door"] == "grpc"


@pytest.mark.parametrize("message", [b"", b"{", b"[]", b'{"a":1,"a":2}', b'"\xff"', b"[" * 100_000])
def test_what_is_not_json_is_invalid_input(robot: NewAgent, message: bytes) -> None:
    from execution.grpc import door

    answer = orjson.loads(door.execute(message, {"authorization": f"Bearer {robot.key}"}))
    assert (answer["status"], answer["error"]["code"]) == ("error", "invalid_input")


class Wire:
    """A client made by others, against our server."""

    def __init__(self, port: int) -> None:
        self.port = port

    def ask(self, body: Any, *, timeout: float = 20.0, **metadata: str) -> Any:
        async def one() -> Any:
            async with Channel("127.0.0.1", self.port, codec=Bytes()) as channel:
                calling = UnaryUnaryMethod[bytes, bytes](channel, METHOD, bytes, bytes)
                named = {name.replace("_", "-"): value for name, value in metadata.items()}
                message = body if isinstance(body, bytes) else orjson.dumps(body)
                return await calling(message, timeout=timeout, metadata=named)

        return orjson.loads(asyncio.run(one()))

    def refused(self, body: Any, **more: Any) -> GRPCError:
        with pytest.raises(GRPCError) as caught:
            self.ask(body, **more)
        return caught.value


def begun(port: int, data: bytes, *, is_all: bool = False) -> tuple[socket.socket, H2Connection]:
    """A call in bare HTTP/2, with these bytes in the place of a message."""
    line, h2 = socket.create_connection(("127.0.0.1", port), 10), H2Connection()
    h2.initiate_connection()
    pseudo = [(":method", "POST"), (":scheme", "http"), (":path", METHOD), (":authority", "here")]
    h2.send_headers(1, [*pseudo, ("te", "trailers"), ("content-type", "application/grpc+json")])
    h2.send_data(1, data, end_stream=is_all)
    line.sendall(h2.data_to_send())
    return line, h2


def bare(port: int, data: bytes) -> dict[str, str]:
    """What comes back to such a call, headers and trailers together."""
    line, h2 = begun(port, data, is_all=True)
    found: dict[str, str] = {}
    with line:
        while "grpc-status" not in found:
            for event in h2.receive_data(line.recv(65_536)):
                if isinstance(event, ResponseReceived | TrailersReceived):
                    found |= {name.decode(): value.decode() for name, value in event.headers}
    return found


def unimplemented(endpoint: str) -> bool:
    """Whether a server answers for a method that nobody has; asked by our own client, which reads such answers."""
    from execution import grpc

    reply = grpc.ask(endpoint, "/nothing/Here", b"{}", headers={}, deadline=time.monotonic() + 10, max_bytes=1_000)
    return reply.status is Status.UNIMPLEMENTED


@pytest.fixture
def served() -> Iterator[Callable[..., Wire]]:
    """A server with this in the place of the door."""
    from contextlib import ExitStack

    from execution.grpc.service import ToolService, server

    with ExitStack() as stack:

        def start(execute: Any, threads: int = 2) -> Wire:
            service = ToolService(threads, execute)
            stack.callback(service.close)
            return Wire(stack.enter_context(serving(lambda: server(service))))

        yield start


@pytest.mark.django_db(transaction=True)
@pytest.mark.usefixtures("at_once")
def test_the_whole_way_over_the_wire(robot: NewAgent, served: Callable[..., Wire]) -> None:
    from execution.grpc import door

    wire = served(door.execute)
    body = {"request_id": "r-1", "tool": {"name": "Lab.Echo"}, "input": {"value": "hello"}}
    proofs: list[dict[str, Any]] = [{"authorization": f"Bearer {robot.key}"}, {"oxp_api_key": robot.key}]
    for proof in proofs:
        assert wire.ask(body, **proof)["output"] == {"result": "hello"}
    wrongs: list[dict[str, Any]] = [{}, {"authorization": "Bearer nobody"}, {"oxp_api_key": robot.key + "x"}]
    for wrong in wrongs:
        assert wire.refused(body, **wrong).status is Status.UNAUTHENTICATED


@pytest.mark.django_db(transaction=True)
@pytest.mark.usefixtures("at_once")
def test_placet_can_be_the_grpc_tool_of_a_contract_client(
    robot: NewAgent, served: Callable[..., Wire], settings: Any
) -> None:
    from execution.credentials import Credentials
    from execution.errors import CallError, ErrorCode
    from execution.grpc import door
    from execution.runtimes.grpc import GrpcRuntime
    from registry.risk import RiskLevel
    from tests.runtimes.webkit import invocation

    settings.PLACET_EGRESS_ALLOW = ["127.0.0.0/8"]
    wire = served(door.execute)
    credentials = Credentials(headers={"Authorization": f"Bearer {robot.key}"})
    fields: dict[str, Any] = {"arguments": {"value": [1, "ä"]}, "timeout": 20.0}
    asked = invocation("grpc", f"grpc://127.0.0.1:{wire.port}", credentials=credentials, **fields)
    vars(asked.tool).update(flat_name="Lab_Echo", risk=RiskLevel.LOW, capabilities=())
    assert GrpcRuntime().run(asked).value == [1, "ä"]
    with pytest.raises(CallError) as caught:
        GrpcRuntime().run(invocation("grpc", f"grpc://127.0.0.1:{wire.port}", **fields))
    assert caught.value.code is ErrorCode.AUTH_INVALID


def test_the_callers_deadline_shortens_our_wait(served: Callable[..., Wire]) -> None:
    wire = served(lambda message, metadata, left: orjson.dumps(left))
    assert 1 < wire.ask({}, timeout=3.0) <= 3


def test_a_message_that_is_too_large_is_refused_before_it_is_read(served: Callable[..., Wire]) -> None:
    wire = served(lambda message, metadata, left: b"{}")
    assert wire.ask(b'"' + b"x" * 900_000 + b'"') == {}
    refusal = wire.refused(b"x" * 8_000_000)
    assert refusal.status is Status.RESOURCE_EXHAUSTED


@pytest.mark.parametrize(
    ("data", "status"),
    [
        (b"\x01\0\0\0\x02{}", Status.UNIMPLEMENTED),  # compressed
        (b"\0\0\0", Status.INVALID_ARGUMENT),
        (b"\0\0\0\0\x09{}", Status.INVALID_ARGUMENT),
        (b"\0\xff\xff\xff\xff{}", Status.RESOURCE_EXHAUSTED),
        (b"\0\0\0\0\0", Status.OK),  # an empty message is the door's to refuse
        (b"", Status.OK),
    ],
)
def test_a_message_that_is_none_is_told_so(served: Callable[..., Wire], data: bytes, status: Status) -> None:
    wire = served(lambda message, metadata, left: b"{}")
    assert bare(wire.port, data)["grpc-status"] == str(status.value)
    assert wire.ask({}) == {}


@pytest.mark.parametrize("noise", [b"GET / HTTP/1.1\r\n\r\n", b"\x16\x03\x01\x02\x00", b"\xff" * 5_000])
def test_noise_on_the_port_harms_nobody(served: Callable[..., Wire], noise: bytes) -> None:
    wire = served(lambda message, metadata, left: b"{}")
    with socket.create_connection(("127.0.0.1", wire.port), 10) as line:
        line.sendall(noise)
        assert wire.ask({}) == {}


def test_who_sends_slowly_takes_no_place_from_others(served: Callable[..., Wire]) -> None:
    wire = served(lambda message, metadata, left: b"{}", threads=1)
    lines = [begun(wire.port, b"\0\0\0\0\x09{") for _ in range(10)]
    try:
        assert wire.ask({}) == {}
    finally:
        for line, _ in lines:
            line.close()


def test_a_method_that_we_do_not_have_is_unimplemented(served: Callable[..., Wire], settings: Any) -> None:
    settings.PLACET_EGRESS_ALLOW = ["127.0.0.0/8"]
    wire = served(lambda message, metadata, left: b"{}")
    assert unimplemented(f"grpc://127.0.0.1:{wire.port}")


def test_a_bug_and_a_lost_database_are_told_without_their_words(
    served: Callable[..., Wire], caplog: pytest.LogCaptureFixture
) -> None:
    from django.db import OperationalError

    def fail(message: bytes, metadata: Any, left: Any) -> bytes:
        raise OperationalError("host db-7") if message == b"1" else ZeroDivisionError("secret words")

    wire = served(fail)
    lost, bug = wire.refused(b"1"), wire.refused(b"0")
    assert (lost.status, bug.status) == (Status.UNAVAILABLE, Status.INTERNAL)
    assert "db-7" not in str(lost.message) + str(bug.message)
    assert "secret words" not in str(bug.message)
    assert "secret words" in caplog.text


def test_more_requests_than_can_be_held_are_told_to_come_again(served: Callable[..., Wire]) -> None:
    go, held = threading.Event(), threading.Semaphore(0)

    def hold(message: bytes, metadata: Any, left: Any) -> bytes:
        held.release()
        go.wait(20)
        return b"{}"

    wire = served(hold, threads=1)
    answers: list[Any] = []
    refusals: list[Status] = []

    def insist() -> None:
        """As told, comes again: the one that only looks how full it is may have been in before."""
        while not go.is_set():
            try:
                answers.append(wire.ask({}))
                return
            except GRPCError as error:
                refusals.append(error.status)
        answers.append(wire.ask({}))

    asking = [threading.Thread(target=insist) for _ in range(2)]
    for thread in asking:
        thread.start()
    assert held.acquire(timeout=10)
    until = time.monotonic() + 10
    while time.monotonic() < until:
        try:
            wire.ask({}, timeout=0.3)
        except GRPCError as error:
            if error.status is Status.UNAVAILABLE:
                break
        except TimeoutError:
            continue
    else:
        pytest.fail("everything was taken")
    go.set()
    for thread in asking:
        thread.join(10)
    assert answers == [{}, {}]
    assert set(refusals) <= {Status.UNAVAILABLE}


def test_tls_is_spoken_with_a_certificate(tmp_path: Path, settings: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write_certificate(tmp_path)
    environment = {**os.environ, "PYTHONUNBUFFERED": "1", "DJANGO_SETTINGS_MODULE": "config.settings.test"}
    options: list[str | Path] = ["--port", "0", "--tls-cert", path, "--threads", "1"]
    process = subprocess.Popen(
        [sys.executable, ROOT / "manage.py", "serve_grpc", *options],
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        cwd=ROOT,
    )
    assert process.stdout is not None
    with process, process.stdout as output:
        try:
            found = next((line for line in output if line.startswith("gRPC at")), "")
            assert found.strip().endswith("TLS")
            settings.PLACET_EGRESS_ALLOW = ["127.0.0.0/8"]
            monkeypatch.setenv("SSL_CERT_FILE", str(path))
            assert unimplemented(f"grpcs://127.0.0.1:{found.split('port ')[1].split(',')[0]}")
        finally:
            process.terminate()
            rest = output.read()
        assert process.wait(20) == 0, rest


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"host": "0.0.0.0"}, "in the clear"),
        ({"tls_key": "x.pem"}, "needs --tls-cert"),
        ({"tls_cert": "/nowhere.pem"}, "cannot be used"),
        ({"tls_cert": "x", "plaintext": True}, "exclude each other"),
        ({"port": 70_000}, "--port"),
        ({"threads": 0}, "--threads"),
        ({"connections": 0}, "--connections"),
        ({"host": "203.0.113.7", "plaintext": True}, "Cannot listen"),
    ],
)
def test_options_that_make_no_sense_are_refused(options: dict[str, Any], words: str) -> None:
    with pytest.raises(CommandError, match=words):
        call_command("serve_grpc", **options)
