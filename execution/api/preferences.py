"""What a client asks for beside its request: how long to wait, and under which key."""

import math

from rest_framework.request import Request

from registry.api.errors import BadParameter, Refused

MAX_WAIT = 60.0
MAX_KEY = 255


def wait_parameter(request: Request) -> float:
    """`?wait=30`: seconds to hold the answer until the call moves."""
    return _seconds("wait", request.query_params.get("wait", "0"))


def preferred_wait(request: Request) -> float:
    """`Prefer: wait=10` (RFC 7240)."""
    for preference in request.headers.get("Prefer", "").split(","):
        name, _, value = preference.partition("=")
        if name.strip().lower() == "wait":
            return _seconds("Prefer: wait", value.strip().strip('"'))
    return 0.0


def idempotency_key(request: Request) -> str | None:
    key = request.headers.get("Idempotency-Key")
    if key is None:
        return None
    if not 1 <= len(key) <= MAX_KEY or not key.isprintable():
        raise Refused(400, "bad_header", f"Idempotency-Key must be 1 to {MAX_KEY} printable characters")
    return key


def _seconds(name: str, text: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        seconds = math.nan
    if not 0 <= seconds < math.inf:
        raise BadParameter(name, "must be a number of seconds, 0 or more")
    return min(seconds, MAX_WAIT)
