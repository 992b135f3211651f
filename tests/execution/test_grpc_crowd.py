"""More connections to the gRPC door than it has room for: who asks gets in, who only sits there makes room."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any

import pytest
from h2.connection import H2Connection
from h2.events import ConnectionTerminated

from execution.grpc.codec import JSONCodec
from execution.grpc.crowd import CrowdedServer
from execution.grpc.service import ToolService
from tests.execution.test_serve_grpc import Wire, begun
from tests.services.grpcserver import serving
from tests.stories.product import wait_until

Start = Callable[..., Wire]


@pytest.fixture
def served() -> Iterator[Start]:
    with ExitStack() as stack:

        def start(execute: Any = lambda message, metadata, left: b"{}", **limits: Any) -> Wire:
            service = ToolService(2, execute)
            stack.callback(service.close)
            return Wire(stack.enter_context(serving(lambda: CrowdedServer([service], codec=JSONCodec(), **limits))))

        yield start


def idle(port: int) -> socket.socket:
    """A connection that says hello and nothing more."""
    line, h2 = socket.create_connection(("127.0.0.1", port), 10), H2Connection()
    h2.initiate_connection()
    line.sendall(h2.data_to_send())
    return line


def goodbye(line: socket.socket, within: float = 10.0) -> ConnectionTerminated | None:
    """What a server says when it closes a connection; None if it says nothing before it does."""
    h2, said = H2Connection(), None
    h2.initiate_connection()
    line.settimeout(within)
    while data := line.recv(65_536):
        said = next((event for event in h2.receive_data(data) if isinstance(event, ConnectionTerminated)), said)
    return said


def is_open(line: socket.socket) -> bool:
    """Whether the other side has not closed it; reads what came so far."""
    line.setblocking(False)
    try:
        while data := line.recv(65_536):
            assert data
    except BlockingIOError:
        return True
    except ConnectionResetError:
        return False
    return False


def test_a_port_full_of_those_who_ask_nothing_is_open_to_who_does(served: Start) -> None:
    wire = served(most=5)
    with ExitStack() as lines:
        sitting = [lines.enter_context(idle(wire.port)) for _ in range(30)]
        assert wire.ask({}) == {}
        assert wait_until(lambda: sum(map(is_open, sitting)) < 5, 5)


def test_who_waits_for_an_answer_is_never_sent_away_and_the_newcomer_hears_why(served: Start) -> None:
    go = threading.Event()

    def slow(message: bytes, metadata: Any, left: Any) -> bytes:
        go.wait(20)
        return b"{}"

    wire = served(slow, most=2)
    with ExitStack() as lines:
        lines.callback(go.set)
        waiting = [begun(wire.port, b"\0\0\0\0\x02{}", is_all=True)[0] for _ in range(2)]
        for line in waiting:
            lines.enter_context(line)
        time.sleep(0.3)
        said = goodbye(lines.enter_context(idle(wire.port)))
        assert said is not None
        assert said.error_code == 11  # enhance your calm
        assert all(map(is_open, waiting))
        go.set()
    assert wire.ask({}) == {}


def test_a_connection_that_asks_nothing_for_long_is_closed_although_it_pings(served: Start) -> None:
    wire = served(idle=0.5)
    began = time.monotonic()
    with idle(wire.port) as line:
        h2 = H2Connection()
        h2.initiate_connection()
        h2.data_to_send()
        while time.monotonic() - began < 10:
            h2.ping(b"12345678")
            try:
                line.sendall(h2.data_to_send())
            except OSError:
                break
            if not is_open(line):
                break
            time.sleep(0.05)
        assert 0.4 < time.monotonic() - began < 5


def test_a_call_that_takes_longer_than_the_patience_with_idlers_is_answered(served: Start) -> None:
    def slow(message: bytes, metadata: Any, left: Any) -> bytes:
        time.sleep(1.0)
        return b"{}"

    assert served(slow, idle=0.4).ask({}) == {}
