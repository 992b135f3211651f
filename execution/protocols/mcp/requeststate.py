"""RequestState: what a client of 2026-07-28 carries from one try to the next, and can neither read nor change.

It opens for the agent, the method and the arguments it was sealed for, until it expires. That it is used once is for
`elicitations.take` to see to: a turn of a call is taken once, for good.
"""

import binascii
import hashlib
import time
from base64 import urlsafe_b64decode, urlsafe_b64encode
from dataclasses import dataclass
from uuid import UUID

import orjson

from audit.canonical import canonical
from execution.protocols.mcp.exchange import Exchange
from execution.protocols.mcp.rpcerrors import INVALID_PARAMS, RpcError
from policy.sealedbox import Unsealable, seal, unseal

MAX_LENGTH = 1_000
_ADDED = "placet.dev/arguments"


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestState:
    """The call that a retry belongs to, its turn, and whether an answer is expected with it."""

    call: UUID
    turn: int
    asks: bool
    expires: float  # seconds since the epoch

    def sealed_for(self, exchange: Exchange) -> str:
        plain = orjson.dumps([self.call.hex, self.turn, self.asks, self.expires])
        return _text(seal(plain, bound_to=_place(exchange)))


def opened(exchange: Exchange) -> RequestState:
    """The state that came with this request; RpcError if it is not ours, not for this request, or too old."""
    given = exchange.params.get("requestState")
    try:
        if not isinstance(given, str) or len(given) > MAX_LENGTH:
            raise ValueError
        sealed = urlsafe_b64decode(given.encode("ascii") + b"=" * (-len(given) % 4))
        if _text(sealed) != given:  # one state has one spelling
            raise ValueError
        call, turn, asks, expires = orjson.loads(unseal(sealed, bound_to=_place(exchange)))
    except (ValueError, binascii.Error, Unsealable):
        raise refusal("invalid", "it was not given to this agent for exactly this request") from None
    if time.time() > expires:
        raise refusal("expired", "it is too old")
    return RequestState(call=UUID(call), turn=turn, asks=asks, expires=expires)


def refusal(reason: str, why: str, call_id: str = "") -> RpcError:
    """Never the call of another one: whoever holds a state that opens is told its own call's id."""
    data = {"reason": reason, "detail": "Make the call again without requestState"}
    if call_id:
        data |= {"call_id": call_id, "detail": 'Ask for the call by its id in _meta["placet.dev/call_id"]'}
    return RpcError(INVALID_PARAMS, f"Invalid params: requestState is refused, {why}", data)


def _text(sealed: bytes) -> str:
    return urlsafe_b64encode(sealed).decode().rstrip("=")


def _place(exchange: Exchange) -> str:
    """Who asks, by which method, for exactly what: the seal opens nowhere else."""
    params = exchange.params
    asked = [params.get("name"), params.get("arguments") or {}, exchange.meta.get(_ADDED) or {}]
    digest = hashlib.sha256(canonical(asked)).hexdigest()
    return f"mcp.requeststate:{exchange.caller.agent_id}:{exchange.method}:{digest}"
