"""The grpc runtime: what goes over the wire, what becomes of each status, and how it fails."""

import base64
import ssl
import struct
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from socket import socket
from typing import Any

import pytest
from grpclib.const import Status
from grpclib.server import Server
from h2.errors import ErrorCodes

from execution.cancel import Cancel
from execution.credentials import Credentials
from execution.errors import CallError, ErrorCode
from execution.runtimes.grpc import STATUSES, GrpcRuntime
from tests.runtimes.webkit import TRACEPARENT, invocation
from tests.services.certificate import write_certificate
from tests.services.grpcserver import (
    Bytes,
    GrpcServer,
    dies,
    echoes,
    fails,
    grpcserver,
    hangs,
    rawserver,
    says,
    serving,
)

OK = {"status": "ok", "output": {"result": 1}}
SECRET = "s3cr3t-value-of-some-length"


@pytest.fixture(autouse=True)
def opened(settings: Any) -> None:
    settings.PLACET_EGRESS_ALLOW = ["127.0.0.0/8"]


@pytest.fixture
def server() -> Iterator[GrpcServer]:
    with grpcserver(says(OK)) as running:
        yield running


def run(endpoint: str, **fields: Any) -> Any:
    return GrpcRuntime().run(invocation("grpc", endpoint, **fields))


def failed(endpoint: str, **fields: Any) -> CallError:
    with pytest.raises(CallError) as caught:
        run(endpoint, **fields)
    return caught.value


def context(folder: Path, *alpn: str) -> ssl.SSLContext:
    made = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    made.load_cert_chain(write_certificate(folder))
    made.set_alpn_protocols(list(alpn))
    return made


def test_37_39_the_whole_request_goes_as_json_and_credentials_as_metadata(server: GrpcServer) -> None:
    credentials = Credentials(
        profile="bearer", secret_ref="key", headers={"Authorization": f"Bearer {SECRET}"}, needles={"key": SECRET}
    )
    result = run(server.url, credentials=credentials, traceparent=TRACEPARENT, timeout=7.0)
    assert (result.value, result.traffic.status) == (1, "OK")
    assert result.traffic.sent > 100
    assert result.traffic.received > 50
    (asked,), (metadata,), (timeout,) = server.asked, server.metadata, server.timeouts
    assert (asked["tool_contract_version"], asked["request_id"], asked["attempt"]) == ("v1", "call-1", 2)
    assert asked["input"] == {"query": "äöü", "n": 1}
    assert asked["auth"] == {"profile": "bearer", "secret_ref": "key", "scopes": []}
    assert asked["runtime"]["mode"] == "grpc"
    assert SECRET not in str(asked)
    assert metadata["authorization"] == f"Bearer {SECRET}"
    assert (metadata["idempotency-key"], metadata["traceparent"]) == ("call-1", TRACEPARENT)
    assert timeout is not None
    assert 5 < timeout <= 7


def test_39_a_key_in_a_header_of_its_own_is_metadata_too(server: GrpcServer) -> None:
    run(server.url, credentials=Credentials(profile="api_key_header", headers={"X-Api-Key": SECRET}))
    assert server.metadata[0]["x-api-key"] == SECRET


@pytest.mark.parametrize(
    "headers",
    [
        {"grpc-timeout": "1S"},
        {"Content-Type": "text/plain"},
        {"key-bin": "abcd"},
        {"X-Key": "sch\u00fcssel"},
        {"X-Key": "a\r\nb"},
        {"Idempotency-Key": "mine"},
        {"te": "x"},
        {":path": "/other"},
    ],
)
def test_39_what_cannot_be_metadata_is_refused_before_anything_is_sent(
    server: GrpcServer, headers: dict[str, str]
) -> None:
    error = failed(server.url, credentials=Credentials(profile="api_key_header", headers=headers))
    assert (error.code, error.is_sent, server.asked) == (ErrorCode.RUNTIME_INVALID, False, [])
    assert not any(value in repr(error.failure) for value in headers.values() if len(value) > 3)


def test_b3_every_status_has_its_row() -> None:
    assert set(STATUSES) == set(Status) - {Status.OK}


@pytest.mark.parametrize(
    ("status", "code", "can_retry"),
    [
        (1, "canceled", False),
        (2, "execution_failed", True),
        (3, "invalid_input", False),
        (4, "timeout", True),
        (5, "execution_failed", False),
        (6, "execution_failed", False),
        (7, "auth_forbidden", False),
        (8, "execution_failed", True),
        (9, "execution_failed", False),
        (10, "execution_failed", True),
        (11, "invalid_input", False),
        (12, "unsupported_tool", False),
        (13, "execution_failed", True),
        (14, "execution_failed", True),
        (15, "execution_failed", False),
        (16, "auth_invalid", False),
    ],
)
def test_38_b3_each_status_is_told_as_the_table_says(
    server: GrpcServer, status: int, code: str, can_retry: bool
) -> None:
    server.act = fails(Status(status), "wörds % of theirs")
    error = failed(server.url)
    assert (error.code.wire, error.failure.can_retry, error.is_sent) == (code, can_retry, True)
    assert error.failure.message == f"The tool answered {Status(status).name}: wörds % of theirs"
    assert error.failure.details == {"tool": "Lab.Thing@1.0.0", "grpc_status": Status(status).name}
    assert error.traffic.status == Status(status).name


def test_the_words_to_a_status_repeat_no_secret(server: GrpcServer) -> None:
    server.act = fails(Status.UNAUTHENTICATED, f"bad key {SECRET}, {base64.b64encode(SECRET.encode()).decode()}")
    error = failed(server.url, credentials=Credentials(headers={"x-key": SECRET}, needles={"key": SECRET}))
    assert SECRET not in error.failure.message
    assert base64.b64encode(SECRET.encode()).decode() not in error.failure.message


def test_an_error_of_the_contract_comes_back_as_the_tool_says_it(server: GrpcServer) -> None:
    told = {"code": "permission_denied", "reason": "x", "retryable": False, "message": "No", "details": {"rule": 1}}
    server.act = says({"status": "denied", "error": told})
    error = failed(server.url)
    assert (error.code, error.failure.message) == (ErrorCode.PERMISSION_DENIED, "No")


@pytest.mark.parametrize(("body", "can_retry"), [(b"hello", True), (b"", True), (b"[]", False), (b"{}", False)])
def test_33_34_what_is_no_response_is_a_failure(server: GrpcServer, body: bytes, can_retry: bool) -> None:
    server.act = says(body)
    error = failed(server.url)
    assert (error.code, error.failure.can_retry) == (ErrorCode.EXECUTION_FAILED, can_retry)


def test_large_requests_and_answers_pass_through_the_windows(server: GrpcServer) -> None:
    server.act = echoes(lambda asked: {"status": "ok", "output": {"result": asked["input"]["text"] + "!"}})
    text = "x" * 900_000
    assert run(server.url, arguments={"text": text}, timeout=20.0).value == text + "!"


def test_19_a_stuck_server_is_left_in_time_and_told_so(server: GrpcServer) -> None:
    run(server.url)
    server.act = hangs
    began = time.monotonic()
    error = failed(server.url, timeout=0.2)
    assert time.monotonic() - began < 0.2 + 0.12 + 0.2  # the last for the other work on this machine
    assert (error.code, error.is_sent) == (ErrorCode.TIMEOUT, True)
    assert error.failure.details == {"timeout_ms": 200}
    assert server.is_cancelled.wait(5)


def test_20_a_cancellation_reaches_the_server(server: GrpcServer) -> None:
    server.act, cancel = hangs, Cancel()
    threading.Timer(0.3, cancel.set).start()
    began = time.monotonic()
    error = failed(server.url, cancel=cancel)
    assert time.monotonic() - began < 2
    assert (error.code, error.is_sent) == (ErrorCode.CANCELED, True)
    assert server.is_cancelled.wait(5)


def test_20_what_is_cancelled_already_is_never_asked(server: GrpcServer) -> None:
    cancel = Cancel()
    cancel.set()
    error = failed(server.url, cancel=cancel)
    assert (error.code, error.is_sent, server.asked) == (ErrorCode.CANCELED, False, [])


def test_20_the_server_is_told_with_a_reset_of_the_stream() -> None:
    heard, is_heard = bytearray(), threading.Event()

    def talk(line: socket) -> None:
        while data := line.recv(65_536):
            heard.extend(data)
        is_heard.set()

    with rawserver(talk) as port:
        assert failed(f"grpc://127.0.0.1:{port}", timeout=0.3).code is ErrorCode.TIMEOUT
        assert is_heard.wait(5)
    assert bytes(heard).endswith(b"\x00\x00\x04\x03\x00\x00\x00\x00\x01" + struct.pack(">I", ErrorCodes.CANCEL))


def test_37_tls_is_the_default_and_the_certificate_is_checked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = context(tmp_path, "h2")
    with grpcserver(says(OK), made) as server:
        error = failed(server.url)
        assert (error.code, error.is_sent, error.failure.can_retry) == (ErrorCode.EXECUTION_FAILED, False, False)
        assert "not trusted" in error.failure.developer_message
        monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "loopback.pem"))
        assert run(server.url).value == 1
        assert run(server.url.removeprefix("grpcs://")).value == 1
        assert len(server.asked) == 2


def test_37_nothing_older_than_tls_1_2_is_spoken() -> None:
    from execution.egress import tls_context

    assert tls_context("h2").minimum_version >= ssl.TLSVersion.TLSv1_2


def test_a_server_that_does_not_offer_http_2_gets_no_request(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "loopback.pem"))
    made = context(tmp_path, "http/1.1")
    with rawserver(lambda line: line.close(), made) as port:
        error = failed(f"127.0.0.1:{port}")
    assert (error.code, error.is_sent, error.failure.can_retry) == (ErrorCode.EXECUTION_FAILED, False, False)


def test_a82_plaintext_where_tls_is_set_gets_no_request(server: GrpcServer) -> None:
    error = failed(server.url.replace("grpc://", "grpcs://"))
    assert (error.code, error.is_sent, server.asked) == (ErrorCode.EXECUTION_FAILED, False, [])


def test_plaintext_to_a_server_with_tls_fails(tmp_path: Path) -> None:
    with grpcserver(says(OK), context(tmp_path, "h2")) as server:
        error = failed(server.url.replace("grpcs://", "grpc://"))
        assert (error.code, server.asked) == (ErrorCode.EXECUTION_FAILED, [])


@pytest.mark.parametrize("endpoint", ["grpc://127.0.0.1:50051", "grpc://169.254.169.254:80", "grpc://[::1]:50051"])
def test_31_a_closed_address_gets_no_packet(settings: Any, endpoint: str) -> None:
    settings.PLACET_EGRESS_ALLOW = []
    error = failed(endpoint)
    assert (error.code, error.is_sent) == (ErrorCode.RUNTIME_INVALID, False)
    assert error.failure.details["refused"] == "egress_denied"


@pytest.mark.parametrize("endpoint", ["http://127.0.0.1:80", "grpc://127.0.0.1", "127.1:50051", "grpc://a@b:50051", ""])
def test_an_address_that_is_none_is_refused(endpoint: str) -> None:
    assert failed(endpoint).code is ErrorCode.RUNTIME_INVALID


def test_nobody_listening_means_never_sent() -> None:
    with rawserver(lambda line: None) as port:
        pass
    error = failed(f"grpc://127.0.0.1:{port}")
    assert (error.code, error.is_sent, error.failure.can_retry) == (ErrorCode.EXECUTION_FAILED, False, True)


def test_a_server_that_dies_has_got_the_call(server: GrpcServer) -> None:
    server.act = dies
    error = failed(server.url)
    assert (error.code, error.is_sent, error.failure.can_retry) == (ErrorCode.EXECUTION_FAILED, True, True)


def test_a82_a_method_that_is_not_served_is_an_unsupported_tool() -> None:
    with serving(lambda: Server([], codec=Bytes())) as port:
        error = failed(f"grpc://127.0.0.1:{port}")
    assert (error.code, error.failure.can_retry) == (ErrorCode.UNSUPPORTED_TOOL, False)


def test_a82_a_message_of_64_mb_is_left_at_its_first_bytes(server: GrpcServer) -> None:
    server.act = says(b"x" * 64_000_000)
    error = failed(server.url, timeout=20.0)
    assert error.failure.details == {"limit": 1_000_000, "refused": "response_too_large"}
    assert (error.is_sent, error.failure.can_retry) == (True, False)
    assert error.traffic.received < 1_000_000
