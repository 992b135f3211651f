"""Dialect: how one door speaks. Two translations for calls and one for refusals; none of them knows Django."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from execution.messages import CallOutcome, CallRequest
from policy.caller import Caller


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What a door sends back: a JSON value, one that is encoded already, or the pieces of a stream of events."""

    body: Any
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    events: Iterator[bytes] | None = None  # instead of a body


class Refusal(Exception):
    """A request that never became a call; each door says it in its own form."""

    def __init__(
        self,
        code: str,
        message: str,
        *,
        status: int = 400,
        developer_message: str = "",
        headers: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.status = status
        self.developer_message = developer_message
        self.headers: Mapping[str, str] = headers or {}
        self.call_id = ""  # known once the caller's own id has been read


@dataclass(frozen=True, slots=True, kw_only=True)
class Manner:
    """A door's name, and how it says no."""

    name: str  # the door, as records name it
    from_refusal: Callable[[Refusal], Answer]


@dataclass(frozen=True, slots=True, kw_only=True)
class Dialect(Manner):
    """One specification's way to ask and to answer."""

    to_request: Callable[[Any, Caller], CallRequest]  # raises Refusal
    from_outcome: Callable[[CallOutcome], Answer]


def seconds(milliseconds: int) -> str:
    """The value of Retry-After: whole seconds, never less than was asked for, never none."""
    return str(max(1, -(-milliseconds // 1000)))
