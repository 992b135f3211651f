"""Notices leave by the same guarded way as calls to tools."""

import time
from collections.abc import Mapping

from execution import egress
from policy.undelivered import Undelivered
from policy.wayout import Reply

MAX_ANSWER = 65_536


def post(address: str, body: bytes, headers: Mapping[str, str], within: float) -> Reply:
    """One POST, answered within so many seconds; messages never hold the address, which may be a secret."""
    try:
        answer = egress.request(
            "POST", address, headers=headers, body=body, deadline=time.monotonic() + within, max_bytes=MAX_ANSWER
        )
    except egress.EgressDenied as error:
        raise Undelivered(f"the webhook may not be reached: {error}; PLACET_EGRESS_ALLOW opens ranges") from error
    except egress.EgressTimeout as error:
        raise Undelivered(f"the webhook did not answer within {within:g} seconds", is_away=True) from error
    except (egress.AnswerTooLarge, egress.RedirectRefused) as error:  # its status has said all there is to know
        return Reply(int(error.traffic.status))
    except egress.EgressError as error:
        raise Undelivered(f"the webhook: {error}", is_away=not error.is_sent) from error
    return Reply(answer.status, answer.headers.value("retry-after"))
