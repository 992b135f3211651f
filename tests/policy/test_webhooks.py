"""The webhook: signed, bounded in time and size, straight to its address, against a real server on loopback."""

from __future__ import annotations

import hashlib
import hmac
import json
import socket
import ssl
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from django.core.exceptions import ImproperlyConfigured
from django.db import transaction

from config import env
from execution import wayout
from execution.egress.line import PIECE, Line
from policy import delivery, notices, webhooks
from policy.models import Notice
from policy.undelivered import Undelivered
from registry.clock import Later
from tests.services.certificate import write_certificate

SECRET = "a secret for the webhook"


@dataclass
class Receiver:
    """What came in, and how it is answered."""

    url: str = ""
    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)
    body: bytes = b"ok"
    drip: float = 0.0  # seconds between the bytes of the answer
    server: Any = None
    requests: list[tuple[str, dict[str, str], bytes]] = field(default_factory=list)


@pytest.fixture
def receiver(settings: Any) -> Iterator[Receiver]:
    told = Receiver()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            told.requests.append((self.path, dict(self.headers.items()), body))
            self.send_response(told.status)
            for name, value in told.headers.items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(told.body)))
            self.end_headers()
            try:
                for byte in [told.body] if not told.drip else [told.body[n : n + 1] for n in range(len(told.body))]:
                    self.wfile.write(byte)
                    self.wfile.flush()
                    time.sleep(told.drip)
            except OSError:
                pass  # the caller has gone

        do_GET = do_POST

        def log_message(self, *args: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads, server.block_on_close = True, False
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    told.server = server
    told.url = f"http://127.0.0.1:{server.server_address[1]}/services/T0/B0?x=1"
    settings.PLACET_NOTICE_WEBHOOK, settings.PLACET_NOTICE_SECRET = told.url, SECRET
    settings.PLACET_URL, settings.PLACET_EGRESS_ALLOW = "https://placet.example.org", ("127.0.0.0/8",)
    try:
        yield told
    finally:
        server.shutdown()
        server.server_close()
        thread.join(timeout=5)


@pytest.fixture
def notice(db: None, receiver: Receiver) -> Notice:
    with transaction.atomic():
        (made,) = notices.tell(
            "approval.asked",
            people=[],
            subject="bot asks <!channel> & more",
            text="A call needs a person. <https://evil.example|click>",
            path="/approvals/7/",
            facts={"tool": "Payments.Refund", "agent": "bot", "rule": "<!everyone>", "quorum": 2},
        )
    return made


def test_a_receiver_can_prove_who_sent_it_and_when(receiver: Receiver, notice: Notice) -> None:
    assert delivery.deliver() == 1
    ((path, headers, body),) = receiver.requests
    assert path == "/services/T0/B0?x=1"
    stamp = headers["X-Placet-Timestamp"]
    assert abs(int(stamp) - time.time()) < 30
    expected = hmac.new(SECRET.encode(), stamp.encode() + b"." + body, hashlib.sha256).hexdigest()
    assert headers["X-Placet-Signature"] == f"v1={expected}"
    assert headers["Idempotency-Key"] == str(notice.pk)
    assert headers["Content-Type"] == "application/json; charset=utf-8"
    assert SECRET not in str(receiver.requests)


def test_the_body_is_one_that_slack_shows_and_programs_read(receiver: Receiver, notice: Notice) -> None:
    delivery.deliver()
    told = json.loads(receiver.requests[0][2])
    url = "https://placet.example.org/approvals/7/"
    assert told["placet"] == {"kind": "approval.asked", "url": url, "facts": notice.content["facts"]}
    assert told["text"] == f"bot asks &lt;!channel&gt; &amp; more\n{url}"
    header, section, fields, link = told["blocks"]
    assert header["text"] == {"type": "plain_text", "text": "bot asks <!channel> & more", "emoji": False}
    assert "&lt;https://evil.example|click&gt;" in section["text"]["text"]
    assert all(entry["type"] == "plain_text" for entry in fields["fields"])
    assert link["text"]["text"] == f"<{url}|Open in Placet>"


def test_the_same_notice_keeps_its_key_when_it_is_sent_again(receiver: Receiver, notice: Notice) -> None:
    receiver.status = 500
    assert delivery.deliver() == 0
    Notice.objects.update(next_at=Later(-1))
    receiver.status = 204
    receiver.body = b""
    assert delivery.deliver() == 1
    keys = [headers["Idempotency-Key"] for _, headers, _ in receiver.requests]
    assert keys == [str(notice.pk)] * 2


@pytest.mark.parametrize("status", [301, 302, 307, 400, 404, 410, 500, 503])
def test_an_answer_that_is_not_a_yes_is_a_failure_and_a_redirect_is_not_followed(
    receiver: Receiver, notice: Notice, status: int
) -> None:
    receiver.status, receiver.headers = status, {"Location": receiver.url}
    assert delivery.deliver() == 0
    assert len(receiver.requests) == 1
    notice.refresh_from_db()
    assert (notice.state, notice.attempts, notice.error) == ("waiting", 1, f"the webhook answered {status}")


@pytest.mark.parametrize(
    ("header", "least", "most"),
    [("120", 115, 125), ("999999", 3_500, 3_605), ("soon", 0, 15), ("-5", 0, 15), ("9" * 30, 3_500, 3_605)],
)
def test_a_receiver_that_asks_for_time_gets_it_up_to_an_hour(
    receiver: Receiver, notice: Notice, header: str, least: float, most: float
) -> None:
    receiver.status, receiver.headers = 429, {"Retry-After": header}
    delivery.deliver()
    notice.refresh_from_db()
    assert least <= notice.next_at.timestamp() - time.time() <= most


def test_a_receiver_that_answers_byte_by_byte_is_cut_off(
    receiver: Receiver, notice: Notice, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(webhooks, "TIMEOUT", 0.5)
    receiver.drip, receiver.body = 0.1, b"x" * 100
    began = time.monotonic()
    assert delivery.deliver() == 0
    assert time.monotonic() - began < 3
    notice.refresh_from_db()
    assert notice.error == "the webhook did not answer within 0.5 seconds"


def test_a_receiver_that_takes_the_connection_and_says_nothing_is_cut_off(
    notice: Notice, settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(webhooks, "TIMEOUT", 0.3)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        settings.PLACET_NOTICE_WEBHOOK = f"http://127.0.0.1:{silent.getsockname()[1]}/"
        with pytest.raises(Undelivered, match="did not answer") as refusal:
            webhooks.post(notice, url="https://x/")
    assert refusal.value.is_away


def test_a_tls_handshake_that_never_comes_is_cut_off_too(
    notice: Notice, settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(webhooks, "TIMEOUT", 0.3)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        settings.PLACET_NOTICE_WEBHOOK = f"https://127.0.0.1:{silent.getsockname()[1]}/"
        with pytest.raises(Undelivered, match="did not answer"):
            webhooks.post(notice, url="https://x/")


def test_a_server_without_tls_where_tls_is_due_is_named(receiver: Receiver, notice: Notice, settings: Any) -> None:
    settings.PLACET_NOTICE_WEBHOOK = receiver.url.replace("http:", "https:")
    with pytest.raises(Undelivered, match="no TLS with"):
        webhooks.post(notice, url="https://x/")
    assert not receiver.requests


def test_over_tls_a_certificate_is_trusted_or_nothing_is_sent(
    receiver: Receiver, notice: Notice, settings: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = write_certificate(tmp_path)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(file)
    receiver.server.socket = context.wrap_socket(receiver.server.socket, server_side=True)
    settings.PLACET_NOTICE_WEBHOOK = receiver.url.replace("http:", "https:")
    with pytest.raises(Undelivered, match="is not trusted"):
        webhooks.post(notice, url="https://x/")
    assert not receiver.requests
    monkeypatch.setenv("SSL_CERT_FILE", str(file))
    assert delivery.deliver() == 1
    assert receiver.requests[0][1]["X-Placet-Signature"].startswith("v1=")


def test_an_answer_of_any_length_is_read_only_so_far(
    receiver: Receiver, notice: Notice, monkeypatch: pytest.MonkeyPatch
) -> None:
    receiver.body = b"x" * 5_000_000
    read: list[int] = []
    real = Line.receive

    def counted(self: Line) -> bytes:
        found = real(self)
        read.append(len(found))
        return found

    monkeypatch.setattr(Line, "receive", counted)
    assert delivery.deliver() == 1
    assert sum(read) < 2 * wayout.MAX_ANSWER + PIECE


def test_nobody_there_is_said_without_the_address(notice: Notice, settings: Any) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    settings.PLACET_NOTICE_WEBHOOK = f"http://127.0.0.1:{port}/services/SECRET"
    assert delivery.deliver() == 0
    notice.refresh_from_db()
    assert notice.error == "the webhook: 127.0.0.1 cannot be reached (ECONNREFUSED)"
    assert "SECRET" not in str(list(Notice.objects.values()))


def test_a_proxy_of_the_environment_is_not_asked(
    receiver: Receiver, notice: Notice, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("http_proxy", "HTTP_PROXY", "https_proxy", "ALL_PROXY", "all_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    assert delivery.deliver() == 1
    assert len(receiver.requests) == 1


def test_a_private_address_is_closed_to_notices_too_unless_it_was_opened(
    receiver: Receiver, notice: Notice, settings: Any
) -> None:
    settings.PLACET_EGRESS_ALLOW = ()
    assert delivery.deliver() == 0
    notice.refresh_from_db()
    assert "the webhook may not be reached" in notice.error
    assert "PLACET_EGRESS_ALLOW" in notice.error
    assert not receiver.requests


def test_plain_http_leaves_this_machine_for_nobody(notice: Notice, settings: Any) -> None:
    settings.PLACET_NOTICE_WEBHOOK = "http://198.51.100.7/hook"
    with pytest.raises(Undelivered, match="not https"):
        webhooks.post(notice, url="https://x/")


def test_without_a_secret_nothing_pretends_to_be_signed() -> None:
    assert set(webhooks.signed(b"{}", secret="", at=1)) == {"X-Placet-Timestamp"}


@pytest.mark.parametrize(
    "url", ["", "https://hooks.example.org/a?b=c", "http://127.0.0.1:9/x", "http://localhost/", "http://[::1]:9/"]
)
def test_an_address_for_the_webhook_is_taken(monkeypatch: pytest.MonkeyPatch, url: str) -> None:
    monkeypatch.setenv("PLACET_NOTICE_WEBHOOK", url)
    assert env.webhook("PLACET_NOTICE_WEBHOOK") == url


@pytest.mark.parametrize(
    "url",
    [
        "http://hooks.example.org/",
        "ftp://hooks.example.org/",
        "hooks.example.org",
        "https:///path",
        "https://user:pw@hooks.example.org/",
        "https://hooks.example.org/#x",
        "https://hooks.example.org:port/",
        "https://hooks.example.org/\r\nX-Evil: 1",
        "https://hooks.example.org/a b",
        "http://127.0.0.1.example.org/",
        "http://0x7f.1/",
    ],
)
def test_an_address_that_would_leak_or_cannot_be_read_stops_the_start(
    monkeypatch: pytest.MonkeyPatch, url: str
) -> None:
    monkeypatch.setenv("PLACET_NOTICE_WEBHOOK", url)
    with pytest.raises(ImproperlyConfigured, match="PLACET_NOTICE_WEBHOOK") as refusal:
        env.webhook("PLACET_NOTICE_WEBHOOK")
    assert url not in str(refusal.value)
