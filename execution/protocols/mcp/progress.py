"""Progress: a call that takes its time, followed to its end, with what its tool says meanwhile."""

import logging
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from threading import Event
from typing import Any
from uuid import UUID

from django.db import DatabaseError

from execution import bell, calls, dispatch, news, stopping
from execution.messages import CallOutcome
from execution.models import Call, State
from execution.news import LEVELS, Listener
from execution.outcomes import outcome_of
from execution.protocols.mcp.exchange import Era, Exchange
from execution.protocols.mcp.rpcerrors import INVALID_PARAMS, RpcError

log = logging.getLogger(__name__)

LOG_LEVEL = "io.modelcontextprotocol/logLevel"
MAX_TOKEN = 1_000  # characters, as many as an id has: each notification repeats it to a client that may not read
Message = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Wishes:
    """What a client wants to hear while a call runs."""

    token: str | int | None = None  # under which progress is told
    level: str = ""  # from which on log lines are told; none: no lines

    @property
    def is_live(self) -> bool:
        """Whether it asked for this call in particular, so that it hears of it from the beginning."""
        return self.token is not None

    def notification(self, told: Mapping[str, Any], logger: str) -> Message | None:
        if told["kind"] == "progress":
            return self._progress(told)
        if not self.level or LEVELS.index(told["level"]) < LEVELS.index(self.level):
            return None
        params = {"level": told["level"], "logger": logger, "data": told["message"]}
        return {"method": "notifications/message", "params": params}

    def _progress(self, told: Mapping[str, Any]) -> Message | None:
        if self.token is None:
            return None
        params: dict[str, Any] = {"progressToken": self.token, "progress": told["done"]}
        if told["total"] is not None:
            params["total"] = told["total"]
        if told["message"]:
            params["message"] = told["message"]
        return {"method": "notifications/progress", "params": params}


def wishes(exchange: Exchange) -> Wishes:
    """By the request itself, and on the older wire by the level that its session set."""
    token = exchange.meta.get("progressToken")
    if token is not None and (isinstance(token, bool) or not isinstance(token, str | int)):
        raise RpcError(INVALID_PARAMS, "Invalid params: _meta.progressToken must be a string or an integer")
    if isinstance(token, str) and len(token) > MAX_TOKEN:
        raise RpcError(INVALID_PARAMS, f"Invalid params: _meta.progressToken is longer than {MAX_TOKEN} characters")
    level = exchange.meta.get(LOG_LEVEL, "") if exchange.era is Era.MODERN else exchange.log_level
    if level and level not in LEVELS:
        raise RpcError(INVALID_PARAMS, f"Invalid params: _meta {LOG_LEVEL} must be one of {', '.join(LEVELS)}")
    return Wishes(token, level)


class Following:
    """One call from before it begins: its news, its bell, and on the older wire the client's change of mind."""

    def __init__(self, exchange: Exchange, call: UUID, wanted: Wishes, logger: str) -> None:
        self._exchange, self._wanted, self._logger = exchange, wanted, logger
        self._is_given_up = Event()
        self._reached = float("-inf")
        self._listener: Listener
        self._lines = ExitStack()
        self._listen(call)
        if exchange.era is Era.LEGACY:
            self._lines.enter_context(bell.listening(exchange.cancel_topic, self._give_up))

    def close(self) -> None:
        self._lines.close()

    def heard(self) -> list[Message]:
        """What was said until now."""
        found: list[Message] = []
        while (told := self._listener.next(0)) is not None or self._listener.is_waiting:
            if told is not None and (message := self._message(told)) is not None:
                found.append(message)
        return found

    def messages(self, call: UUID, wait: float, last: Callable[[CallOutcome], Message]) -> Iterator[Message | None]:
        """Notifications, then the last message; none of it once the client gave the request up.

        The first item is None, and comes at once. A client that hangs up on the newer wire cancels its call.
        """
        is_over = False
        with self._lines, dispatch.patience(wait) as until, bell.listening(str(call), self._listener.wake):
            try:
                yield None
                while not self._is_given_up.is_set():
                    row = calls.read(call)
                    assert row is not None
                    if not row.is_open or row.state == State.AWAITING_APPROVAL or _is_late(until):
                        yield from self.heard()
                        is_over = True
                        yield last(outcome_of(row))
                        return
                    yield from self._until_moved(until)
                self._cancel(call)
            except GeneratorExit:
                if not is_over and self._exchange.era is Era.MODERN and not stopping.is_stopping():
                    self._cancel(call)
                raise

    def listen_to(self, call: UUID) -> None:
        """It turned out that another call is meant: one that was made before."""
        self._listen(call)

    def _listen(self, call: UUID) -> None:
        self._listener = self._lines.enter_context(news.listening(call))

    def _until_moved(self, until: float) -> Iterator[Message | None]:
        """News as it comes, and None when it is time to look at the call."""
        look_at = min(until, time.monotonic() + dispatch.LOOK_AGAIN)
        while (left := look_at - time.monotonic()) > 0:
            told = self._listener.next(left)
            if told is None:
                break
            if (message := self._message(told)) is not None:
                yield message
        yield None

    def _message(self, told: Mapping[str, Any]) -> Message | None:
        """Progress never goes back, not even when a call is tried again."""
        if told["kind"] == "progress":
            if told["done"] <= self._reached:
                return None
            self._reached = told["done"]
        return self._wanted.notification(told, self._logger)

    def _give_up(self) -> None:
        self._is_given_up.set()
        self._listener.wake()

    def _cancel(self, call: UUID) -> None:
        """Nobody waits for an answer here any more, so that there is nobody to tell of a database that is away."""
        try:
            row = Call.objects.get(pk=call)
            if row.is_open:
                calls.cancel(row, actor=f"agent:{self._exchange.caller.name}")
        except DatabaseError as error:
            log.warning("call %s was given up and could not be cancelled: %s", call, type(error).__name__)


def _is_late(until: float) -> bool:
    """Whether nobody is held any longer: our patience is over, or this server is about to end; the call goes on."""
    return time.monotonic() >= until or stopping.is_stopping()
