"""What comes back from servers that do not play by the rules, over real sockets on loopback."""

import contextlib
import gzip
import json
import os
import resource
import socket
import ssl
import threading
import time
import warnings
import zlib
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from execution.cancel import Cancel
from execution.egress import (
    AnswerTooLarge,
    EgressCancelled,
    EgressError,
    EgressFailed,
    EgressTimeout,
    RedirectRefused,
)
from tests.execution.egresskit import ask
from tests.services.certificate import write_certificate
from tests.services.server import free_port
from tests.services.toolserver import ToolServer, answer, as_json, endless, hang, raw, reset, toolserver

SOON = 0.25  # seconds; the promise is 0.12, but a test may share its processor with others
OK = b"HTTP/1.1 200 OK\r\n"
CHUNKED = OK + b"Transfer-Encoding: chunked\r\n\r\n"


@pytest.fixture
def server(settings: Any) -> Iterator[ToolServer]:
    settings.PLACET_EGRESS_ALLOW = ["127.0.0.0/8"]
    with toolserver() as running:
        yield running


def test_a_request_carries_our_own_framing_and_the_answer_comes_back(server: ToolServer) -> None:
    server.answers["/a"] = as_json({"ä": 1}, X_Thing="one")
    response = ask(f"{server.url}/a?b=c", body=b'{"x":1}', headers={"X-Key": "k"})
    assert (response.status, json.loads(response.body), response.headers.value("X-Thing")) == (200, {"ä": 1}, "one")
    (asked,) = server.asked
    assert (asked.method, asked.path, asked.body) == ("POST", "/a?b=c", b'{"x":1}')
    assert asked.headers["Host"] == f"127.0.0.1:{server.port}"
    assert asked.headers["Content-Length"] == "7"
    assert asked.headers["Accept-Encoding"] == "identity"
    assert (asked.headers["Connection"], asked.headers["X-Key"]) == ("close", "k")
    assert response.traffic.status == "200"
    assert response.traffic.sent > 7
    assert response.traffic.received > len(response.body)


def test_nothing_but_what_was_asked_for_is_sent_with_a_get(server: ToolServer) -> None:
    server.answers["/"] = answer("fine")
    assert ask(f"{server.url}/", method="GET", body=b"").body == b"fine"
    assert sorted(server.asked[0].headers.keys()) == ["Accept-Encoding", "Connection", "Host"]


@pytest.mark.parametrize(
    ("parts", "body"),
    [
        ((CHUNKED, b"5\r\nhello\r\n", b"6;x=y\r\n world\r\n0\r\n\r\n"), b"hello world"),
        ((CHUNKED, b"a\r\n0123456789\r\n0\r\nTrailer: x\r\n\r\n"), b"0123456789"),
        ((OK + b"Content-Length: 3\r\n\r\nabcdef",), b"abc"),
        ((OK + b"Content-Length: 3, 3\r\nContent-Length: 3\r\n\r\nabc",), b"abc"),
        ((OK + b"\r\nuntil the end",), b"until the end"),
        ((b"HTTP/1.0 200\r\n\r\nold",), b"old"),
        ((OK.replace(b"\r", b"") + b"Content-Length: 2\n\nok",), b"ok"),
        ((b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early\r\nLink: x\r\n\r\n" + OK + b"\r\nlate",), b"late"),
        ((b"HTTP/1.1 204 No\r\n\r\nleft over",), b""),
        (tuple(bytes([byte]) for byte in OK + b"Content-Length: 2\r\n\r\nok"), b"ok"),
    ],
)
def test_every_proper_way_to_end_an_answer_is_understood(
    server: ToolServer, parts: tuple[bytes, ...], body: bytes
) -> None:
    server.answers["/"] = raw(*parts)
    assert ask(f"{server.url}/").body == body


@pytest.mark.parametrize(
    "parts",
    [
        (),
        (b"HTTP/1.1 2",),
        (b"SSH-2.0-OpenSSH_9.6\r\n",),
        (b"-ERR wrong number of arguments\r\n",),
        (b"HTTP/2 200 OK\r\n\r\n",),
        (b"HTTP/1.1 099 Low\r\n\r\n",),
        (b"HTTP/1.1 101 Switching\r\nUpgrade: x\r\n\r\n",),
        (b"HTTP/1.1 100 Continue\r\n\r\n" * 50,),
        (OK + b"No colon\r\n\r\n",),
        (OK + b"Name : x\r\n\r\n",),
        (OK + b"A: b\r\n folded\r\n\r\n",),
        (OK + b"A: \x00\r\n\r\n",),
        (OK + b"Content-Length: 10\r\n\r\nshort",),
        (OK + b"Content-Length: -1\r\n\r\n",),
        (OK + b"Content-Length: 1e3\r\n\r\n",),
        (OK + b"Content-Length: 3, 4\r\n\r\nabcd",),
        (OK + b"Content-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n",),
        (OK + b"Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n",),
        (CHUNKED + b"xyz\r\nabc\r\n0\r\n\r\n",),
        (CHUNKED + b"-3\r\nabc\r\n0\r\n\r\n",),
        (CHUNKED + b"3\r\nabcdef\r\n0\r\n\r\n",),
        (CHUNKED + b"3\r\nabc\r\n",),
        (CHUNKED + b"3\r\nab",),
        (CHUNKED + b"3\r\nabc\r\n0\r\n",),
        (OK + b"X: " + b"y" * 100_000 + b"\r\n\r\n",),
        (OK + b"X: y\r\n" * 20_000 + b"\r\n",),
    ],
)
def test_an_answer_that_is_none_is_a_failure_after_the_request_was_sent(
    server: ToolServer, parts: tuple[bytes, ...]
) -> None:
    server.answers["/"] = raw(*parts)
    with pytest.raises(EgressFailed) as failed:
        ask(f"{server.url}/")
    assert (failed.value.is_sent, failed.value.can_retry) == (True, True)


def test_a_connection_that_is_torn_down_is_a_failure_after_the_request_was_sent(server: ToolServer) -> None:
    server.answers |= {"/at-once": reset(), "/later": reset(OK + b"Content-Length: 10\r\n\r\nhalf")}
    for path in server.answers:
        with pytest.raises(EgressFailed) as failed:
            ask(f"{server.url}{path}")
        assert failed.value.is_sent is True
        assert failed.value.traffic.sent > 0
    assert failed.value.traffic.status == "200"


def test_half_a_connection_is_enough_for_an_answer_and_none_is_a_failure(server: ToolServer) -> None:
    def half_close(session: Any) -> None:
        session.say(OK + b"\r\nall there is")
        session.connection.shutdown(socket.SHUT_WR)
        session.wait(5)

    server.answers["/"] = half_close
    assert ask(f"{server.url}/").body == b"all there is"


def test_where_nobody_listens_nothing_was_sent(server: ToolServer) -> None:
    with pytest.raises(EgressFailed) as failed:
        ask(f"http://127.0.0.1:{free_port()}/")
    assert (failed.value.is_sent, failed.value.can_retry) == (False, True)
    assert failed.value.traffic.sent == 0


@pytest.mark.parametrize("status", [300, 301, 302, 303, 304, 307, 308])
@pytest.mark.parametrize("location", ["http://169.254.169.254/", "file:///etc/passwd", "gopher://x/", "/again"])
def test_a_redirect_is_not_followed(server: ToolServer, status: int, location: str) -> None:
    server.answers["/"] = server.answers["/again"] = answer(status=status, Location=location)
    with pytest.raises(RedirectRefused, match="redirect_refused") as refused:
        ask(f"{server.url}/")
    assert (server.connections, refused.value.can_retry, refused.value.is_sent) == (1, False, True)
    assert refused.value.traffic.status == str(status)


def test_a_page_that_wants_to_be_left_is_just_a_text(server: ToolServer) -> None:
    page = '<meta http-equiv="refresh" content="0; url=http://127.0.0.1/">'
    server.answers["/"] = answer(page, kind="text/html", Refresh="0; url=http://127.0.0.1/")
    assert ask(f"{server.url}/").body.decode() == page
    assert server.connections == 1


@pytest.mark.parametrize(
    "reply",
    [
        raw(OK + b"Content-Length: 1000000000\r\n\r\n", b"x" * 100_000),
        raw(CHUNKED, b"3b9aca00\r\n", b"x" * 100_000),
        endless(OK + b"\r\n", b"x" * 65_536),
        endless(CHUNKED, b"400\r\n" + b"x" * 1024 + b"\r\n"),
        answer("x" * 10_001),
    ],
)
def test_an_answer_over_the_limit_is_cut_at_it(server: ToolServer, reply: Any) -> None:
    server.answers["/"] = reply
    with pytest.raises(AnswerTooLarge) as large:
        ask(f"{server.url}/", seconds=10)
    assert (large.value.limit, large.value.is_sent) == (10_000, True)
    assert large.value.traffic.received < 300_000


def test_an_answer_of_exactly_the_limit_is_taken(server: ToolServer) -> None:
    server.answers["/"] = answer("x" * 10_000)
    assert len(ask(f"{server.url}/").body) == 10_000


@pytest.mark.parametrize(
    ("coding", "pack"),
    [("gzip", gzip.compress), ("x-gzip", gzip.compress), ("deflate", zlib.compress), ("identity", bytes)],
)
def test_a_packed_answer_that_was_not_asked_for_is_unpacked(server: ToolServer, coding: str, pack: Any) -> None:
    server.answers["/"] = answer(pack(b"hello " * 100), Content_Encoding=coding)
    assert ask(f"{server.url}/").body == b"hello " * 100


def test_a_bomb_is_unpacked_no_further_than_the_limit(server: ToolServer) -> None:
    bomb = gzip.compress(bytes(50_000_000))
    assert len(bomb) < 100_000
    server.answers["/"] = answer(bomb, Content_Encoding="gzip")
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with pytest.raises(AnswerTooLarge):
        ask(f"{server.url}/", max_bytes=1_000_000)
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 30_000  # kilobytes


@pytest.mark.parametrize(
    ("coding", "body"),
    [
        ("br", b"\x0b\x02\x80hello\x03"),
        ("zstd", b"(\xb5/\xfd"),
        ("gzip, gzip", gzip.compress(gzip.compress(b"x"))),
        ("gzip", b"this is not gzip"),
        ("gzip", gzip.compress(os.urandom(100))[:-20]),
        ("gzip", gzip.compress(b"one") + b"two"),
        ("deflate", b"neither is this"),
    ],
    ids=lambda part: part if isinstance(part, str) else "body",
)
def test_what_cannot_be_unpacked_is_no_answer(server: ToolServer, coding: str, body: bytes) -> None:
    server.answers["/"] = answer(body, Content_Encoding=coding)
    with pytest.raises(EgressFailed) as failed:
        ask(f"{server.url}/")
    assert failed.value.is_sent is True


@pytest.mark.parametrize(
    "reply",
    [
        hang(),
        hang(b"HTTP/1.1 200"),
        hang(OK + b"Content-Length: 10\r\n\r\nhalf"),
        endless(OK, b"X: y\r\n", every=0.01),
        endless(OK + b"\r\n", b"x", every=0.01),
        endless(CHUNKED, b"1\r\nx\r\n", every=0.01),
    ],
)
def test_an_answer_that_does_not_come_or_does_not_end_is_cut_at_the_deadline(server: ToolServer, reply: Any) -> None:
    server.answers["/"] = reply
    began = time.monotonic()
    with pytest.raises(EgressTimeout) as late:
        ask(f"{server.url}/", seconds=0.2)
    assert 0.2 <= time.monotonic() - began < 0.2 + SOON
    assert late.value.is_sent is True


def test_many_small_chunks_cost_no_more_than_their_bytes(server: ToolServer) -> None:
    server.answers["/"] = raw(CHUNKED, b"1\r\nx\r\n" * 200_000, b"0\r\n\r\n")
    began = time.process_time()
    assert ask(f"{server.url}/", seconds=20, max_bytes=200_000).body == b"x" * 200_000
    assert time.process_time() - began < 4


def test_a_flood_does_not_push_the_deadline_back(server: ToolServer) -> None:
    server.answers["/"] = endless(CHUNKED, b"1\r\nx\r\n" * 1000)
    began = time.monotonic()
    with pytest.raises(EgressTimeout):
        ask(f"{server.url}/", seconds=0.2, max_bytes=10**9)
    assert time.monotonic() - began < 0.2 + SOON


def test_one_who_does_not_read_holds_nobody_up(server: ToolServer) -> None:
    with socket.socket() as deaf:
        deaf.bind(("127.0.0.1", 0))
        deaf.listen()
        began = time.monotonic()
        with pytest.raises(EgressTimeout) as late:
            ask(f"http://127.0.0.1:{deaf.getsockname()[1]}/", body=bytes(50_000_000), seconds=0.3)
        assert time.monotonic() - began < 0.3 + SOON
    assert late.value.is_sent is True
    assert 0 < late.value.traffic.sent < 50_000_000


@pytest.mark.parametrize("reply", [hang(), hang(OK + b"Content-Length: 10\r\n\r\nhalf")])
def test_a_cancellation_wakes_a_reader_at_once(server: ToolServer, reply: Any) -> None:
    server.answers["/"] = reply
    cancel = Cancel()
    threading.Timer(0.15, cancel.set).start()
    began = time.monotonic()
    with pytest.raises(EgressCancelled) as cancelled:
        ask(f"{server.url}/", seconds=10, cancel=cancel)
    assert time.monotonic() - began < 0.15 + SOON
    assert cancelled.value.is_sent is True


@pytest.fixture
def certificate(tmp_path: Path) -> Path:
    return write_certificate(tmp_path)


@pytest.fixture
def secure(certificate: Path, settings: Any) -> Iterator[ToolServer]:
    settings.PLACET_EGRESS_ALLOW = ["127.0.0.0/8", "::1"]
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate)
    with toolserver({"/": answer("in private")}, context) as running:
        yield running


def test_a_trusted_certificate_for_the_host_opens_the_line(
    secure: ToolServer, certificate: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", str(certificate))
    assert ask(f"{secure.url}/").body == b"in private"


def test_an_untrusted_certificate_gets_no_byte_of_the_request(secure: ToolServer) -> None:
    with pytest.raises(EgressFailed, match="not trusted") as failed:
        ask(f"{secure.url}/")
    assert (failed.value.is_sent, failed.value.can_retry, secure.asked) == (False, False, [])


def test_a_certificate_for_another_host_gets_no_byte_of_the_request(
    secure: ToolServer, certificate: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", str(certificate))
    with pytest.raises(EgressFailed, match="not trusted") as failed:
        ask(f"https://localhost:{secure.port}/")
    assert (failed.value.is_sent, secure.asked) == (False, [])


def test_tls_of_yesterday_is_refused(secure: ToolServer, certificate: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert secure.context is not None
    secure.context.set_ciphers("ALL:@SECLEVEL=0")
    with warnings.catch_warnings(action="ignore"):
        secure.context.minimum_version = ssl.TLSVersion.TLSv1
        secure.context.maximum_version = ssl.TLSVersion.TLSv1_1
    monkeypatch.setenv("SSL_CERT_FILE", str(certificate))
    with pytest.raises(EgressFailed, match="no TLS") as failed:
        ask(f"{secure.url}/")
    assert failed.value.is_sent is False


def test_a_server_that_speaks_no_tls_gets_no_byte_of_the_request(settings: Any) -> None:
    settings.PLACET_EGRESS_ALLOW = ["127.0.0.0/8"]
    with socket.create_server(("127.0.0.1", 0)) as listener, ThreadPoolExecutor(1) as pool:
        heard = pool.submit(speak_plainly, listener)
        with pytest.raises(EgressError) as failed:
            ask(f"https://127.0.0.1:{listener.getsockname()[1]}/the-path", seconds=1)
        greeting = heard.result(timeout=10)
    assert failed.value.is_sent is False
    assert greeting[:1] == b"\x16"  # a TLS handshake, and nothing in the clear behind it
    assert b"the-path" not in greeting
    assert b"HTTP/1.1" not in greeting


def speak_plainly(listener: socket.socket) -> bytes:
    """All that came over one connection whose first bytes were answered without TLS."""
    listener.settimeout(10)
    connection, _ = listener.accept()
    with connection:
        connection.settimeout(10)
        heard = connection.recv(65536)
        connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nplain")
        with contextlib.suppress(ConnectionResetError):
            while more := connection.recv(65536):
                heard += more
    return heard


def test_an_answer_under_tls_that_is_cut_short_is_not_taken_for_a_whole_one(
    secure: ToolServer, certificate: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def cut(session: Any) -> None:
        session.say(OK + b"\r\npay 1")
        time.sleep(0.02)
        socket.socket.shutdown(session.connection, socket.SHUT_RDWR)  # the connection ends, TLS does not say goodbye

    secure.answers["/"] = cut
    monkeypatch.setenv("SSL_CERT_FILE", str(certificate))
    with pytest.raises(EgressFailed) as failed:
        ask(f"{secure.url}/")
    assert failed.value.is_sent is True
