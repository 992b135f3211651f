"""Complaints: what a sandboxed tool wrote to standard error, for its log lines and for the developer."""

from audit.redaction import Redactor
from execution.runtimes.base import Invocation

MAX_LINES = 200
MAX_EXCERPT = 400


def tell(errors: bytes, invocation: Invocation) -> None:
    """Each line as a log line of the call, as many as are kept."""
    for line in _text(errors).splitlines()[:MAX_LINES]:
        if line.strip():
            invocation.on_news({"kind": "log", "level": "warning", "message": line})


def excerpt(errors: bytes, invocation: Invocation) -> str:
    """The end of it, where the reason stands; redacted before it is cut, for half a secret would not be recognised."""
    brought = {**invocation.secrets, **invocation.authorization, **invocation.credentials.needles}
    shown = Redactor(brought).text(_text(errors).strip())
    return shown if len(shown) <= MAX_EXCERPT else "…" + shown[1 - MAX_EXCERPT :]


def _text(errors: bytes) -> str:
    return errors.decode("utf-8", "replace").replace("\0", "\ufffd")
