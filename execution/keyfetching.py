"""Key sets are fetched by the same guarded way as tools are called."""

import time

from execution import egress
from policy.keyset import MAX_BYTES
from policy.keysets import Unfetched


def fetch(address: str, within: float) -> bytes:
    """One GET, answered within so many seconds; messages never hold the address."""
    headers = {"Accept": "application/jwk-set+json, application/json", "User-Agent": "Placet"}
    try:
        answer = egress.request(
            "GET", address, headers=headers, deadline=time.monotonic() + within, max_bytes=MAX_BYTES
        )
    except egress.EgressDenied as error:
        raise Unfetched(f"its server may not be reached: {error}; PLACET_EGRESS_ALLOW opens ranges") from error
    except egress.EgressError as error:
        raise Unfetched(f"its server: {error}") from error
    if answer.status != 200:
        raise Unfetched(f"its server answered {answer.status}")
    return answer.body
