"""How long a client is ready to wait for an answer."""

import math

from rest_framework.request import Request

from registry.api.errors import BadParameter

MAX_WAIT = 60.0


def wait_parameter(request: Request) -> float:
    """`?wait=30`: seconds to hold the answer until something moves."""
    return _seconds("wait", request.query_params.get("wait", "0"))


def preferred_wait(request: Request, default: float = 0.0) -> float:
    """`Prefer: wait=10` (RFC 7240)."""
    for preference in request.headers.get("Prefer", "").split(","):
        name, _, value = preference.partition("=")
        if name.strip().lower() == "wait":
            return _seconds("Prefer: wait", value.strip().strip('"'))
    return default


def _seconds(name: str, text: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        seconds = math.nan
    if not 0 <= seconds < math.inf:
        raise BadParameter(name, "must be a number of seconds, 0 or more")
    return min(seconds, MAX_WAIT)
