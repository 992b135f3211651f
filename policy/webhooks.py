"""One notice to the webhook: a signed POST in a form that Slack reads, with hard limits of time and size."""

import hashlib
import hmac
import http.client
import json
import socket
import ssl
import threading
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from typing import Any
from urllib.parse import urlsplit

from django.conf import settings

from policy.models import Notice
from policy.startup_checks import is_loopback
from policy.undelivered import Undelivered

TIMEOUT = 10.0  # seconds for everything: connecting, sending, and the whole answer
MAX_ANSWER = 65_536
MAX_RETRY_AFTER = 3_600
_HEADING, _SECTION, _FIELDS = 150, 3_000, 10  # what Slack takes


def post(notice: Notice, *, url: str) -> None:
    """Raises Undelivered unless the receiver answered 2xx in time. `url` is the page that the notice tells of."""
    body = json.dumps(body_of(notice, url=url), ensure_ascii=False, separators=(",", ":")).encode()
    headers = {
        "Content-Type": "application/json; charset=utf-8",
        "User-Agent": "Placet",
        "Idempotency-Key": str(notice.pk),
        "Connection": "close",
        **signed(body, secret=settings.PLACET_NOTICE_SECRET, at=int(time.time())),
    }
    status, retry_after = _exchange(settings.PLACET_NOTICE_WEBHOOK, body, headers)
    if not 200 <= status < 300:
        raise Undelivered(f"the webhook answered {status}", retry_after=retry_after)


def body_of(notice: Notice, *, url: str) -> dict[str, Any]:
    """What Slack shows, and the same for programs under "placet"."""
    content = notice.content
    fields = [
        {"type": "plain_text", "text": f"{name.replace('_', ' ').capitalize()}: {value}", "emoji": False}
        for name, value in content["facts"].items()
    ]
    blocks: list[dict[str, Any]] = [
        {"type": "header", "text": {"type": "plain_text", "text": content["subject"][:_HEADING], "emoji": False}},
        {"type": "section", "text": {"type": "mrkdwn", "text": _escaped(content["text"] or content["subject"])}},
        {"type": "section", "text": {"type": "mrkdwn", "text": f"<{url}|Open in Placet>"}},
    ]
    if fields:
        blocks.insert(2, {"type": "section", "fields": fields[:_FIELDS]})
    return {
        "text": f"{_escaped(content['subject'])}\n{url}",
        "blocks": blocks,
        "placet": {"kind": notice.kind, "url": url, "facts": content["facts"]},
    }


def signed(body: bytes, *, secret: str, at: int) -> dict[str, str]:
    """The receiver makes the same HMAC from timestamp and body, and refuses a timestamp that is minutes old."""
    headers = {"X-Placet-Timestamp": str(at)}
    if secret:
        mac = hmac.new(secret.encode(), f"{at}.".encode() + body, hashlib.sha256)
        headers["X-Placet-Signature"] = f"v1={mac.hexdigest()}"
    return headers


def _escaped(text: str) -> str:
    """Slack reads <…> as links and calls to everyone; a tool's or a rule's words must not make one."""
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")[:_SECTION]


def _exchange(address: str, body: bytes, headers: dict[str, str]) -> tuple[int, float]:
    """The status and the seconds of Retry-After. Straight to the address: no redirect is followed, no proxy asked."""
    parts = urlsplit(address)
    host = parts.hostname or ""
    if parts.scheme != "https" and not is_loopback(host):
        raise Undelivered("the webhook's address is not https")
    target = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    try:
        with _connected(parts.scheme, host, parts.port, until=time.monotonic() + TIMEOUT) as connection:
            connection.request("POST", target, body, headers)
            answer = connection.getresponse()
            status, retry_after = answer.status, _seconds(answer.getheader("Retry-After"))
            answer.read(MAX_ANSWER)  # read so that the sender sees it arrive, then dropped
    except TimeoutError as error:
        raise Undelivered(f"the webhook did not answer within {TIMEOUT:g} seconds", is_away=True) from error
    except ssl.SSLError as error:
        raise Undelivered("the webhook's certificate or TLS is not right") from error
    except OSError as error:
        raise Undelivered(f"the webhook cannot be reached ({type(error).__name__})", is_away=True) from error
    except http.client.HTTPException as error:
        raise Undelivered(f"the webhook's answer is not HTTP ({type(error).__name__})") from error
    return status, retry_after


@contextmanager
def _connected(scheme: str, host: str, port: int | None, *, until: float) -> Iterator[http.client.HTTPConnection]:
    """A connection that is open until the given moment and not longer; what it then breaks off is a TimeoutError."""
    kind = http.client.HTTPSConnection if scheme == "https" else http.client.HTTPConnection
    connection = kind(host, port)
    sock = _first_that_answers(host, connection.port, until)
    connection.sock = sock
    with closing(connection):
        if scheme == "https":
            context = ssl.create_default_context()
            sock = connection.sock = context.wrap_socket(sock, server_hostname=host, do_handshake_on_connect=False)
        with _cut_at(until, sock):
            if isinstance(sock, ssl.SSLSocket):
                sock.do_handshake()
            yield connection


def _first_that_answers(host: str, port: int, until: float) -> socket.socket:
    """Connected to one of the host's addresses, all of them tried in the same time."""
    refusal: OSError = TimeoutError()
    for *_, address in socket.getaddrinfo(host, port, type=socket.SOCK_STREAM):
        if (left := until - time.monotonic()) <= 0:
            raise TimeoutError
        try:
            return socket.create_connection((str(address[0]), port), timeout=left)
        except OSError as error:
            refusal = error
    raise refusal


@contextmanager
def _cut_at(until: float, sock: socket.socket) -> Iterator[None]:
    """Ends the connection at the given moment, however busy: a socket's own timeout begins anew with each byte."""
    was_cut = threading.Event()

    def cut() -> None:
        was_cut.set()
        with suppress(OSError):
            socket.socket.shutdown(sock, socket.SHUT_RDWR)  # under TLS too it is the connection itself that ends

    timer = threading.Timer(max(until - time.monotonic(), 0.0), cut)
    timer.daemon = True
    timer.start()
    try:
        yield
    except (OSError, http.client.HTTPException) as error:
        if was_cut.is_set():
            raise TimeoutError from error
        raise
    finally:
        timer.cancel()
    if was_cut.is_set():
        raise TimeoutError


def _seconds(header: str | None) -> float:
    """Retry-After in seconds; a date or nonsense counts as none."""
    digits = (header or "").strip()
    return float(min(int(digits), MAX_RETRY_AFTER)) if digits.isascii() and digits.isdecimal() else 0.0
