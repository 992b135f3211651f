"""What a client asks for beside its request: how long to wait, and under which key."""

from rest_framework.request import Request

from registry.api.errors import Refused
from registry.api.waiting import preferred_wait, wait_parameter

__all__ = ["idempotency_key", "preferred_wait", "wait_parameter"]

MAX_KEY = 255


def idempotency_key(request: Request) -> str | None:
    key = request.headers.get("Idempotency-Key")
    if key is None:
        return None
    if not 1 <= len(key) <= MAX_KEY or not key.isprintable():
        raise Refused(400, "bad_header", f"Idempotency-Key must be 1 to {MAX_KEY} printable characters")
    return key
