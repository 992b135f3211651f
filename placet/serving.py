"""serve: a program of yours pulls the calls of a toolkit from a Placet server, runs them, and answers.

    placet.serve(toolkit, "https://placet.example", key)

Heartbeats come from a thread of their own, so a tool may take its time. A server that restarts is waited for, and a
session that it forgot is opened anew. SIGTERM and SIGINT let what runs finish, then give the session back.
"""

import logging
import random
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from types import ModuleType
from typing import Any

from placet.answers import BadResult, answer
from placet.context import ToolContext
from placet.conversion import Plan
from placet.errors import ToolError, ToolkitError
from placet.sessionclient import PATIENCE, Away, Refused, SessionClient, Taken
from placet.tool import definition_of
from placet.toolkit import Toolkit

log = logging.getLogger(__name__)

SHORTEST = 0.25  # seconds between heartbeats at least, and until the server says how long it waits for one
WAIT = 20.0  # seconds that a question for work is held
REST = 1.0  # seconds after a question that was of no use
LONGEST_PAUSE = 10.0
MAX_TEXT = 4_000
UNEXPECTED = "The tool failed unexpectedly"
_GONE = (404, 409)  # the call is not ours any more; 404: the session neither
_FOR_GOOD = (400, 401, 403)

Tool = tuple[Callable[..., Any], Plan]


class ServingError(Exception):
    """The server does not let us serve the toolkit, and asking again will not help."""


def serve(
    toolkit: Toolkit | ModuleType | str,
    url: str,
    key: str,
    *,
    tools: Iterable[Callable[..., Any]] | None = None,
    at_once: int = 4,
    grace: float = 25.0,
    stop: threading.Event | None = None,
) -> None:
    """Serve until SIGTERM, SIGINT or `stop`; ServingError if the server refuses for good.

    The tools are those given, or the functions marked with @tool in the module given, or else in the one that calls.
    """
    if not 1 <= at_once <= 50:
        raise ValueError("at_once must be from 1 to 50")
    scope = vars(toolkit) if isinstance(toolkit, ModuleType) else sys._getframe(1).f_globals
    functions = _functions(scope.values() if tools is None else tools)
    Worker(_name(toolkit), functions, SessionClient(url, key), at_once, stop or threading.Event()).work(grace)


class Worker:
    """One session at work: one thread asks for calls, one beats, and each call runs in one of its own."""

    def __init__(
        self, toolkit: str, tools: dict[str, Tool], client: SessionClient, at_once: int, stop: threading.Event
    ) -> None:
        self._toolkit, self._tools, self._client, self._stop = toolkit, tools, client, stop
        self._free = threading.Semaphore(at_once)
        self._at_once = at_once
        self._lock = threading.Lock()
        self._session = ""
        self._held: dict[Taken, threading.Thread] = {}
        self._is_over = threading.Event()
        self._beat_every = SHORTEST
        self._failure: ServingError | None = None

    def work(self, grace: float) -> None:
        """Until it is told to stop; what runs then has `grace` seconds to finish."""
        with _stopped_by_signals(self._stop):
            puller = threading.Thread(target=self._pull_for_ever, name="placet-pull", daemon=True)
            beater = threading.Thread(target=self._beat_for_ever, name="placet-beat", daemon=True)
            puller.start()
            beater.start()
            self._stop.wait()
            log.info("stopping: %d calls of %s are still running", len(self._held), self._toolkit)
            while puller.is_alive():
                self._client.hang_up()
                puller.join(0.1)
            self._finish(grace)
            self._is_over.set()
            beater.join(PATIENCE)
            if self._session:
                with suppress(Away, Refused):
                    self._client.close(self._session)
            self._client.leave()
        if self._failure is not None:
            raise self._failure

    def _finish(self, grace: float) -> None:
        until = time.monotonic() + grace
        for thread in list(self._held.values()):
            thread.join(max(0.0, until - time.monotonic()))

    # Asking for work

    def _pull_for_ever(self) -> None:
        """Until it is time to stop."""
        pause = 0.0
        while not self._stop.wait(pause):
            try:
                pause = self._pull()
            except Away as error:
                pause = _longer(pause)
                if not self._stop.is_set():
                    log.warning("%s: asking again in %.1f s (%s)", self._toolkit, pause, error)
            except Refused as error:
                pause = self._refused(error, pause)
            except Exception:
                pause = _longer(pause)
                log.exception("%s: asking for work failed", self._toolkit)
        self._client.leave()

    def _pull(self) -> float:
        """Takes what there is to take; the seconds to rest before the next question."""
        if not self._session:
            self._open()
        if not self._free.acquire(timeout=0.5):
            return 0.0
        self._free.release()
        free = self._at_once - len(self._held)
        began = time.monotonic()
        found = self._client.pending(self._session, wait=WAIT, limit=max(1, free))
        if not found:
            return REST if time.monotonic() - began < REST else 0.0  # so many ask that we were not let wait
        taken = sum(self._take(request) for request in found if not self._stop.is_set())
        return 0.0 if taken else REST  # those are for others

    def _open(self) -> None:
        opened = self._client.open(self._toolkit)
        self._session = opened["sessionId"]
        self._beat_every = min(5.0, max(SHORTEST, float(opened.get("lease", 15)) / 4))
        log.info("session %s serves %s", self._session, self._toolkit)

    def _refused(self, error: Refused, pause: float) -> float:
        if error.status == 404 and self._session:  # the server forgot it, or someone closed it
            log.warning("the session is gone; opening another")
            self._session = ""
            return 0.0
        if error.status in _FOR_GOOD or error.status == 404:
            self._failure = ServingError(f"{self._toolkit} cannot be served: {error}")
            self._stop.set()
        return _longer(pause)

    def _take(self, request: dict[str, Any]) -> bool:
        """Whether the request is ours now, and runs."""
        taken, tool = Taken(self._session, request["requestId"]), self._tools.get(request["tool"].lower())
        if tool is None or not self._free.acquire(blocking=False):
            return False
        try:
            # An answer that was lost may have been a yes, and then the request must be kept alive.
            self._insist(lambda: self._client.beat(taken), request["timeout"], self._stop)
        except (Away, Refused) as error:
            self._free.release()
            if isinstance(error, Away) or error.status not in _GONE:
                raise
            return False
        thread = threading.Thread(target=self._run, args=(taken, request, tool), name="placet-call", daemon=True)
        with self._lock:
            self._held[taken] = thread
        thread.start()
        return True

    # Staying alive

    def _beat_for_ever(self) -> None:
        while not self._is_over.wait(self._beat_every):
            for taken in list(self._held):
                try:
                    self._client.beat(taken)
                except Refused as error:
                    if self._let_go(taken):
                        log.warning("call %s is not ours any more: %s", taken.request, error)
                except Exception as error:  # a beat that fails must not stop the next one
                    log.warning("a heartbeat of call %s failed: %s", taken.request, error)
            if not self._held:  # servers close what is not used, and the next beat must not be the one to find out
                self._client.leave()
        self._client.leave()

    def _let_go(self, taken: Taken) -> bool:
        """Whether it was still ours."""
        with self._lock:
            return self._held.pop(taken, None) is not None

    # Running and answering

    def _run(self, taken: Taken, request: dict[str, Any], tool: Tool) -> None:
        try:
            self._say(taken, self._outcome(taken, request, tool))
        except Exception:
            log.exception("the answer to call %s could not be given", taken.request)
        finally:
            self._let_go(taken)
            self._client.leave()
            self._free.release()

    def _outcome(self, taken: Taken, request: dict[str, Any], tool: Tool) -> Callable[[], None]:
        """What came of the call, ready to be told."""
        function, plan = tool
        try:
            context = self._context(taken, request) if plan.context_parameter else None
            result = function(**plan.keywords(request["arguments"], context))
            if hasattr(result, "__await__"):
                import asyncio

                result = asyncio.run(_awaited(result))
            fields = _fields(result)
        except ToolError as error:
            told = _told(error)
        except BadResult as error:
            told = _unusable(error)
        except BaseException as error:  # a tool that calls sys.exit() ends its call, not its worker
            log.exception("%s failed", request["toolId"])
            told = {"error": UNEXPECTED, "developerMessage": f"{type(error).__name__}: {error}"[:MAX_TEXT]}
        else:
            return lambda: self._client.respond(taken, fields)
        return lambda: self._client.fail(taken, told)

    def _say(self, taken: Taken, tell: Callable[[], None]) -> None:
        """Until the server has heard it; it takes the first answer, and a second one does no harm."""
        pause = 0.0
        while taken in self._held:
            try:
                tell()
                return
            except Refused as error:
                if error.status in _GONE:
                    log.warning("the answer to call %s was not taken: %s", taken.request, error)
                    return
                if error.status in (400, 413):
                    tell = partial(self._client.fail, taken, _unusable(error))
            except Away as error:
                log.warning("the answer to call %s waits: %s", taken.request, error)
            pause = min(self._beat_every, _longer(pause))  # a server that is back soon asks who is still there
            if self._is_over.wait(pause):
                return

    def _context(self, taken: Taken, request: dict[str, Any]) -> ToolContext:
        needs = request["requires"]
        brought: dict[str, Any] = {}
        if needs["secrets"] or needs["authorization"] or needs["userId"]:
            held = self._insist(lambda: self._client.held(taken), request["timeout"], self._is_over)
            brought = held["context"]
        return ToolContext(
            secrets=brought.get("secrets"),
            authorization=brought.get("authorization"),
            agent=request["agent"],
            user_id=brought.get("userId", ""),
            call_id=request["callId"],
            attempt=request["attempt"],
            idempotency_key=request["idempotencyKey"],
            trace_id=request["traceparent"].split("-")[1],
            timeout=request["timeout"],
        )

    def _insist(self, ask: Callable[[], Any], seconds: float, enough: threading.Event) -> Any:
        """As often as a heartbeat is due, while the attempt has time and until it is enough."""
        pause, until = 0.0, time.monotonic() + seconds
        while True:
            try:
                return ask()
            except Away:
                pause = min(self._beat_every, _longer(pause))
                if time.monotonic() + pause > until or enough.wait(pause):
                    raise


def _name(toolkit: Toolkit | ModuleType | str) -> str:
    if isinstance(toolkit, str):
        return toolkit
    if isinstance(toolkit, Toolkit):
        return toolkit.name
    found = [value for value in vars(toolkit).values() if isinstance(value, Toolkit)]
    if len(found) != 1:
        raise ToolkitError(f"{toolkit.__name__} must hold one Toolkit, not {len(found)}")
    return found[0].name


def _functions(candidates: Iterable[Any]) -> dict[str, Tool]:
    definitions = [found for each in candidates if (found := definition_of(each)) is not None]
    if not definitions:
        raise ToolkitError("there is nothing to serve: no function is marked with @tool")
    return {each.name.lower(): (each.function, Plan(each.function)) for each in definitions}


def _fields(result: Any) -> dict[str, Any]:
    """An object as its fields; any other value as the lone field `result`."""
    told = answer(result)
    if told["kind"] != "value":
        raise BadResult("a session's response has no place for content blocks; return a value")
    value = told["value"]
    if isinstance(value, dict) and "state" not in value and set(value) != {"result"}:
        return value
    return {} if value is None else {"result": value}


def _told(error: ToolError) -> dict[str, Any]:
    told: dict[str, Any] = {"error": error.message.strip()[:MAX_TEXT] or UNEXPECTED, "canRetry": error.can_retry}
    told["developerMessage"] = error.developer_message[:MAX_TEXT]
    told["additionalPromptContent"] = error.additional_prompt_content[:MAX_TEXT]
    return told | ({} if error.retry_after_ms is None else {"retryAfterMs": min(error.retry_after_ms, 86_400_000)})


def _unusable(error: Exception) -> dict[str, Any]:
    return {"error": "The tool gave no usable result", "developerMessage": str(error)[:MAX_TEXT]}


def _longer(pause: float) -> float:
    return min(LONGEST_PAUSE, max(0.2, pause * 2)) * random.uniform(0.8, 1.0)


async def _awaited(awaitable: Any) -> Any:
    return await awaitable


@contextmanager
def _stopped_by_signals(stop: threading.Event) -> Iterator[None]:
    """Where signals can be heard at all; what was there before comes back."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def hear(*_: object) -> None:
        # A handler runs between two steps of this very thread, which may just hold the lock of the event.
        threading.Thread(target=stop.set, daemon=True).start()

    before = {number: signal.signal(number, hear) for number in (signal.SIGTERM, signal.SIGINT)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
