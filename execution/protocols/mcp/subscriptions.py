"""Subscriptions: a stream on which a client hears that the list of its tools has changed, or what its tasks do."""

import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from threading import Lock
from typing import Any

from django.conf import settings

from execution import stopping
from execution.protocols.mcp import tasknews
from execution.protocols.mcp.exchange import Exchange, Stream
from execution.protocols.mcp.listing import shelf_of
from execution.protocols.mcp.rpcerrors import INVALID_PARAMS, TOO_MANY, UNAVAILABLE, RpcError
from policy.authentication import still_holds
from policy.caller import Caller
from registry import revision

TICK = 0.5  # seconds between looks at the registry's revision
RETRY_AFTER = 10  # seconds
SUBSCRIPTION = "io.modelcontextprotocol/subscriptionId"
LIST_CHANGED = "notifications/tools/list_changed"
ACKNOWLEDGED = "notifications/subscriptions/acknowledged"
_FILTERS = ("toolsListChanged", "promptsListChanged", "resourcesListChanged")

Notice = Mapping[str, Any]


class Places:
    """A stream holds a thread of the web: so many in all, so many of one caller, and each for a bounded time."""

    def __init__(self) -> None:
        self._taken: Counter[int] = Counter()
        self._lock = Lock()

    def take(self, caller: Caller) -> None:
        in_all = max(2, settings.PLACET_WEB_THREADS // 4)
        with self._lock:
            if self._taken[caller.agent_id] >= in_all // 2:
                raise _full(TOO_MANY, 429, "This agent has as many streams open as it may; close one, or ask later")
            if self._taken.total() >= in_all:
                raise _full(UNAVAILABLE, 503, "All places for streams are taken; ask again later")
            self._taken[caller.agent_id] += 1

    def leave(self, caller: Caller) -> None:
        with self._lock:
            self._taken[caller.agent_id] -= 1
            self._taken += Counter()  # drops those who have none

    @property
    def taken(self) -> int:
        return self._taken.total()


PLACES = Places()


class Watch(Iterator[Notice | None]):
    """Yields `notice` each time that what the caller may call has changed, None when nothing has, at the end `last`.

    It ends after its time, with the server, when the credential it was opened with no longer holds, or when `goes_on`
    says no.
    """

    def __init__(
        self,
        caller: Caller,
        *,
        first: Notice | None = None,
        notice: Notice | None,
        last: Notice | None = None,
        goes_on: Callable[[], bool] = lambda: True,
    ) -> None:
        PLACES.take(caller)
        self._is_open = True
        self._caller, self._notice, self._goes_on = caller, notice, goes_on
        self._until = time.monotonic() + settings.PLACET_STREAM_SECONDS
        self._next = [message for message in (first,) if message is not None]
        self._last = [message for message in (last,) if message is not None]
        try:
            self._seen_at = revision.current()
            self._seen = shelf_of(caller)
        except BaseException:
            self.close()
            raise

    def __next__(self) -> Notice | None:
        if self._next:
            return self._next.pop()
        if not self._is_open:
            raise StopIteration
        time.sleep(TICK)
        if stopping.is_stopping() or not self._goes_on():
            return self._ended()
        if (now := revision.current()) != self._seen_at:
            self._seen_at = now
            if not still_holds(self._caller):
                return self._ended()
            was, self._seen = self._seen, shelf_of(self._caller)
            if self._seen != was and self._notice is not None:
                return self._notice
        return None if time.monotonic() < self._until else self._ended()

    def close(self) -> None:
        if self._is_open:
            self._is_open = False
            PLACES.leave(self._caller)

    def _ended(self) -> Notice:
        self.close()
        if self._last:
            return self._last.pop()
        raise StopIteration


def listen(exchange: Exchange) -> Stream:
    """subscriptions/listen: acknowledged first, then what was asked for and nothing else."""
    wanted = exchange.params.get("notifications")
    if not isinstance(wanted, Mapping):
        raise RpcError(INVALID_PARAMS, "params.notifications must be a JSON object", http=400)
    for name in _FILTERS:
        if not isinstance(wanted.get(name, False), bool):
            raise RpcError(INVALID_PARAMS, f"params.notifications.{name} must be true or false", http=400)
    is_wanted = wanted.get("toolsListChanged", False)
    watched = tasknews.wanted(exchange)
    meta = {SUBSCRIPTION: exchange.id}
    honoured: dict[str, Any] = {"toolsListChanged": True} if is_wanted else {}
    if "taskIds" in wanted:
        honoured["taskIds"] = watched
    acknowledged = {"method": ACKNOWLEDGED, "params": {"_meta": meta, "notifications": honoured}}
    changed = {"method": LIST_CHANGED, "params": {"_meta": meta}}
    last = {"result": {"_meta": meta}}
    stream = Stream(Watch(exchange.caller, first=acknowledged, notice=changed if is_wanted else None, last=last))
    return tasknews.joined(stream, exchange, watched, meta)


def standing(caller: Caller, goes_on: Callable[[], bool]) -> Stream:
    """The stream of GET, for clients with a session."""
    return Stream(Watch(caller, notice={"method": LIST_CHANGED}, goes_on=goes_on))


def _full(code: int, http: int, message: str) -> RpcError:
    return RpcError(code, message, http=http, headers={"Retry-After": str(RETRY_AFTER)})
