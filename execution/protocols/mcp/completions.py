"""Completions: a session of 2025-11-25 that was sent to an approval page hears on its stream that people decided."""

import time
from collections.abc import Iterator, Mapping
from typing import Any
from uuid import UUID

from execution.protocols.mcp import elicitations
from execution.protocols.mcp.exchange import Stream

LOOK = 2.0  # seconds between looks, however often the stream has nothing to say
Notice = Mapping[str, Any]


def joined(stream: Stream, session: str) -> Stream:
    """The stream with these notices in between; `session` is the key of the row that keeps it."""
    return Stream(_Joined(stream.messages, session))


class _Joined(Iterator[Notice | None]):
    """Looks when the stream itself has nothing new; ends and closes with it."""

    def __init__(self, messages: Iterator[Notice | None], session: str) -> None:
        self._messages, self._session = messages, session
        self._due: list[UUID] = []
        self._look_at = 0.0

    def __next__(self) -> Notice | None:
        if self._due:
            return _notice(self._due.pop())
        message = next(self._messages)
        if message is None and time.monotonic() >= self._look_at:
            self._look_at = time.monotonic() + LOOK
            self._due = elicitations.announce(self._session)
            return _notice(self._due.pop()) if self._due else None
        return message

    def close(self) -> None:
        closing = getattr(self._messages, "close", None)
        if closing is not None:
            closing()


def _notice(call: UUID) -> Notice:
    return {"method": "notifications/elicitation/complete", "params": {"elicitationId": str(call)}}
