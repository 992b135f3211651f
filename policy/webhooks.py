"""One notice to the webhook: a signed POST in a form that Slack reads, with hard limits of time and size."""

import hashlib
import hmac
import json
import time
from typing import Any
from urllib.parse import urlsplit

from django.conf import settings

from policy import wayout
from policy.models import Notice
from policy.undelivered import Undelivered
from registry.loopback import is_loopback

TIMEOUT = 10.0  # seconds for everything: connecting, sending, and the whole answer
MAX_RETRY_AFTER = 3_600
_HEADING, _SECTION, _FIELDS = 150, 3_000, 10  # what Slack takes


def post(notice: Notice, *, url: str) -> None:
    """Raises Undelivered unless the receiver answered 2xx in time. `url` is the page that the notice tells of."""
    body = json.dumps(body_of(notice, url=url), ensure_ascii=False, separators=(",", ":")).encode()
    headers = {
        "Content-Type": "application/json; charset=utf-8",
        "User-Agent": "Placet",
        "Idempotency-Key": str(notice.pk),
        **signed(body, secret=settings.PLACET_NOTICE_SECRET, at=int(time.time())),
    }
    address = settings.PLACET_NOTICE_WEBHOOK
    parts = urlsplit(address)
    if parts.scheme != "https" and not is_loopback(parts.hostname or ""):
        raise Undelivered("the webhook's address is not https")
    reply = wayout.post(address, body, headers, within=TIMEOUT)
    if not 200 <= reply.status < 300:
        raise Undelivered(f"the webhook answered {reply.status}", retry_after=_seconds(reply.retry_after))


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


def _seconds(header: str) -> float:
    """Retry-After in seconds; a date or nonsense counts as none."""
    digits = header.strip()
    return float(min(int(digits), MAX_RETRY_AFTER)) if digits.isascii() and digits.isdecimal() else 0.0
