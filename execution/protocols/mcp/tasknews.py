"""Task news: `notifications/tasks` for the tasks that a client of the extension named when it began to listen."""

import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from typing import Any
from uuid import UUID

from execution import bell
from execution.models import Call
from execution.protocols.mcp import tasks, tasksupport
from execution.protocols.mcp.exchange import Exchange, Stream
from execution.protocols.mcp.rpcerrors import INVALID_PARAMS, RpcError

MOST = 50  # tasks on one stream
LOOK = 5.0  # seconds after which the rows are looked at although no bell rang
Notice = Mapping[str, Any]


def wanted(exchange: Exchange) -> list[str]:
    """Of the tasks that were asked for, those that can be told of: the caller's own that have not ended."""
    asked = exchange.params.get("notifications", {}).get("taskIds")
    if asked is None:
        return []
    tasksupport.require_declared(exchange)
    if not isinstance(asked, list) or len(asked) > MOST or not all(isinstance(id, str) for id in asked):
        raise RpcError(INVALID_PARAMS, f"params.notifications.taskIds must be at most {MOST} strings", http=400)
    return [str(call.pk) for call in tasks.open_among(exchange.caller, asked)]


def joined(stream: Stream, exchange: Exchange, ids: list[str], meta: Mapping[str, Any]) -> Stream:
    """The stream with these notices in between; each is the whole task, as `tasks/get` would tell it."""
    return Stream(_Joined(stream.messages, exchange, ids, meta)) if ids else stream


class _Joined(Iterator[Notice | None]):
    """Looks at the tasks when a bell rang, or a while after it did; ends and closes with the stream."""

    def __init__(
        self, messages: Iterator[Notice | None], exchange: Exchange, ids: list[str], meta: Mapping[str, Any]
    ) -> None:
        self._messages, self._exchange, self._meta = messages, exchange, meta
        self._known: dict[UUID, str] = {UUID(id): "" for id in ids}
        self._due: list[Notice] = []
        self._moved = threading.Event()
        self._look_at = 0.0
        self._ears = ExitStack()
        for id in ids:
            self._ears.enter_context(bell.listening(id, self._moved.set))

    def __next__(self) -> Notice | None:
        if self._due:
            return self._due.pop(0)
        message = next(self._messages)
        if message is None and self._known and (self._moved.is_set() or time.monotonic() >= self._look_at):
            self._moved.clear()
            self._look_at = time.monotonic() + LOOK
            self._due = self._news()
            return self._due.pop(0) if self._due else None
        return message

    def close(self) -> None:
        self._ears.close()
        closing = getattr(self._messages, "close", None)
        if closing is not None:
            closing()

    def _news(self) -> list[Notice]:
        """What has moved since it was last told; a task that ended is not looked at again."""
        found: list[Notice] = []
        for call in tasks.of(self._exchange.caller).filter(pk__in=list(self._known)):
            if call.state == self._known[call.pk]:
                continue
            found.append(self._notice(call))
            self._known[call.pk] = call.state
            if not call.is_open:
                del self._known[call.pk]
        return found

    def _notice(self, call: Call) -> Notice:
        params = {**tasks.detailed(call, self._exchange), "_meta": dict(self._meta)}
        return {"method": "notifications/tasks", "params": params}
