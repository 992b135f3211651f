"""The grpc runtime against bare HTTP/2: frames that no good server sends, and those that a good one may."""

import struct
import time
from socket import socket
from typing import Any

import pytest
from h2.config import H2Configuration
from h2.connection import H2Connection
from h2.errors import ErrorCodes
from h2.events import DataReceived, RequestReceived, StreamEnded
from hyperframe.frame import GoAwayFrame

from execution.errors import CallError, ErrorCode
from tests.runtimes.test_grpc import failed, opened, run
from tests.services.grpcserver import rawserver

__all__ = ["opened"]

HEADERS = [(":status", "200"), ("content-type", "application/grpc+json")]


class Talker:
    """A server made of bare HTTP/2: it reads the request, then does what the test says."""

    def __init__(self, *acts: Any) -> None:
        self.acts = acts

    def __call__(self, line: socket) -> None:
        h2 = H2Connection(H2Configuration(client_side=False, validate_outbound_headers=False))
        h2.initiate_connection()
        line.sendall(h2.data_to_send())
        is_whole = False
        while not is_whole:
            for event in h2.receive_data(line.recv(65_536)):
                if isinstance(event, DataReceived):
                    h2.acknowledge_received_data(event.flow_controlled_length, 1)
                is_whole = is_whole or isinstance(event, StreamEnded)
        for act in self.acts:
            said = act(h2)
            line.sendall(h2.data_to_send() + (said if isinstance(said, bytes) else b""))
        line.recv(65_536)  # stays until the client has read it all


def frame(body: bytes, *, flag: int = 0, size: int | None = None) -> bytes:
    return bytes([flag]) + struct.pack(">I", len(body) if size is None else size) + body


def headers(*more: tuple[str, str], status: str = "200", end: bool = False) -> Any:
    return lambda h2: h2.send_headers(1, [(":status", status), *HEADERS[1:], *more], end_stream=end)


def data(*parts: bytes) -> Any:
    return lambda h2: [h2.send_data(1, part) for part in parts]


def trailers(*pairs: tuple[str, str]) -> Any:
    return lambda h2: h2.send_headers(1, list(pairs), end_stream=True)


GOOD = (headers(), data(frame(b'{"status":"ok","output":{"result":7}}')), trailers(("grpc-status", "0")))


def told(*acts: Any, **fields: Any) -> CallError:
    with rawserver(Talker(*acts)) as port:
        return failed(f"grpc://127.0.0.1:{port}", **fields)


def test_a_plain_answer_in_bare_http_2_is_understood() -> None:
    with rawserver(Talker(*GOOD)) as port:
        assert run(f"grpc://127.0.0.1:{port}").value == 7


def test_a_server_that_is_about_to_stop_is_heard_out() -> None:
    goaway = GoAwayFrame(0, last_stream_id=1, error_code=0).serialize()
    with rawserver(Talker(lambda h2: goaway, *GOOD)) as port:
        assert run(f"grpc://127.0.0.1:{port}").value == 7


@pytest.mark.parametrize(
    "acts",
    [
        [lambda h2: b"\x00\xff\xff\x00\x00\x00\x00\x00\x01garbage" * 5],  # a frame larger than was agreed
        [lambda h2: b"HTTP/1.1 400 Bad Request\r\n\r\n"],
        [lambda h2: b"\x00\x00\x01\x00\x00\x00\x00\x00\x01x"],  # data before any headers
        [lambda h2: b"\x00\x00\x04\x01\x04\x00\x00\x00\x01\xff\xff\xff\xff"],  # headers that no table unpacks
        [headers(), data(frame(b"{}", flag=1)), trailers(("grpc-status", "0"))],
        [headers(), data(frame(b"{}", size=9)), trailers(("grpc-status", "0"))],
        [headers(), data(b"\0\0"), trailers(("grpc-status", "0"))],
        [headers(), data(frame(b"{}"), frame(b"{}")), trailers(("grpc-status", "0"))],
        [headers(), trailers(("grpc-status", "0"))],
        [headers(), data(frame(b"{}")), trailers(("x", "no status"))],
        [headers(), data(frame(b"{}")), trailers(("grpc-status", "99"))],
        [headers(("grpc-status", "²"), end=True)],
        [headers(status="500", end=True)],
        [headers(), lambda h2: h2.reset_stream(1, ErrorCodes.INTERNAL_ERROR)],
        [lambda h2: GoAwayFrame(0, last_stream_id=0, error_code=0).serialize()],
        [lambda h2: GoAwayFrame(0, last_stream_id=1, error_code=2).serialize()],
    ],
)
def test_a82_bad_frames_are_a_failure_after_the_first_byte(acts: list[Any]) -> None:
    error = told(*acts)
    assert (error.code, error.is_sent, error.failure.can_retry) == (ErrorCode.EXECUTION_FAILED, True, True)


@pytest.mark.parametrize(
    ("status", "code"),
    [("401", ErrorCode.AUTH_INVALID), ("403", ErrorCode.AUTH_FORBIDDEN), ("404", ErrorCode.UNSUPPORTED_TOOL)],
)
def test_the_status_of_a_proxy_is_told_as_grpc_has_it(status: str, code: ErrorCode) -> None:
    assert told(headers(status=status, end=True)).code is code


def test_a82_headers_of_a_megabyte_are_a_failure() -> None:
    many = [(f"x-{number}", "y" * 4_000) for number in range(250)]
    error = told(headers(*many), *GOOD[1:])
    assert (error.code, error.is_sent) == (ErrorCode.EXECUTION_FAILED, True)
    assert error.traffic.received < 1_100_000


PING = b"\x00\x00\x08\x06\x00\x00\x00\x00\x00" + b"p" * 8
NOTHING = b"\x00\x00\x00\x00\x00\x00\x00\x00\x01"
UNKNOWN = b"\x00\x3e\x80\x63\x00\x00\x00\x00\x00" + b"u" * 16_000


@pytest.mark.parametrize("acts", [[lambda h2: PING * 10_000], [headers(), lambda h2: NOTHING * 30_000]])
def test_a82_endless_talk_in_small_frames_ends_at_the_cap_and_not_at_the_timeout(acts: list[Any]) -> None:
    error = told(*acts, *[acts[-1]] * 9, timeout=20.0)
    assert (error.code, error.is_sent) == (ErrorCode.EXECUTION_FAILED, True)
    assert "without ever answering" in error.failure.developer_message


def test_a82_endless_talk_in_large_frames_ends_at_the_cap_too() -> None:
    error = told(*[lambda h2: UNKNOWN * 20] * 20, timeout=20.0)
    assert "without ever answering" in error.failure.developer_message
    assert error.traffic.received < 4_000_000


def test_19_who_talks_all_the_time_is_left_in_time_all_the_same() -> None:
    began = time.monotonic()
    error = told(*[lambda h2: NOTHING * 10_000] * 20, timeout=0.1)
    assert time.monotonic() - began < 0.1 + 0.12 + 1.0  # the last for the server's own end, on a busy machine
    assert error.is_sent


def test_an_answer_before_the_request_was_read_counts() -> None:
    def talk(line: socket) -> None:
        h2 = H2Connection(H2Configuration(client_side=False))
        h2.initiate_connection()
        line.sendall(h2.data_to_send())
        while not any(isinstance(event, RequestReceived) for event in h2.receive_data(line.recv(1_000))):
            line.sendall(h2.data_to_send())
        h2.send_headers(1, [*HEADERS, ("grpc-status", "8"), ("grpc-message", "too%20much")], end_stream=True)
        line.sendall(h2.data_to_send())
        while line.recv(65_536):
            """Until the client leaves."""

    with rawserver(talk) as port:
        error = failed(f"grpc://127.0.0.1:{port}", arguments={"text": "x" * 500_000})
    assert error.failure.message == "The tool answered RESOURCE_EXHAUSTED: too much"


@pytest.mark.parametrize(("said", "after"), [("250", 250), ("-1", None), ("soon", None)])
def test_a_pause_that_the_server_asks_for_is_told(said: str, after: int | None) -> None:
    error = told(headers(("grpc-status", "14"), ("grpc-retry-pushback-ms", said), end=True))
    assert (error.failure.retry_after_ms, error.traffic.status) == (after, "UNAVAILABLE")
