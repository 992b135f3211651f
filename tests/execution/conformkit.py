"""A tool that keeps Tool Contract v1 in everything but the faults that a test gives it."""

from __future__ import annotations

import itertools
import json
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from grpclib.const import Status
from grpclib.exceptions import GRPCError

from tests.services.grpcserver import grpcserver
from tests.services.toolserver import Session, answer, as_json, toolserver

TOKEN = "a-token-that-nobody-guesses"
KEY = f"Bearer {TOKEN}"
INPUT = {"text": "hello"}
SLOW, FAIL, DENIED = {"do": "sleep"}, {"do": "fail"}, {"do": "steal"}

Respond = Callable[[Any, "str | None"], tuple[int, Any]]


class Tool:
    """`faults` are the names of what it does wrongly."""

    def __init__(self, *faults: str) -> None:
        self.faults = frozenset(faults)
        self.answers: dict[str, Any] = {}
        self.count = itertools.count(1)
        self.nameless = itertools.count(1)
        self.slow = itertools.count(1)
        self.is_sulking = False

    def does(self, fault: str) -> bool:
        return fault in self.faults

    def respond(self, asked: Any, key: str | None) -> tuple[int, Any]:
        """The status of HTTP that goes with it, and the response."""
        if not self._is_let_in(key):
            return 401, {"message": "Who are you?"}
        if not isinstance(asked, dict):
            status = 500 if self.does("crash on nonsense") else 400
            return status, self._error({}, "invalid_input", "This is not JSON", field="")
        if self.is_sulking:
            self.is_sulking = False
            return 503, {"message": "You left me"}
        version = asked.get("tool_contract_version", "" if self.does("need a version") else "v1")
        if version != "v1" and not self.does("take any version"):
            told = self._error(asked, "invalid_input", "This speaks v1", field="tool_contract_version", expected="v1")
            if self.does("echo the key"):
                told["error"]["message"] += f", {key}"
            return 200, told
        if not asked.get("request_id") and not self.does("need no id"):
            return 200, self._error(asked, "invalid_input", "request_id is missing", field="request_id")
        if not asked.get("tool", {}).get("name") and not self.does("need no tool"):
            is_odd = self.does("waver") and next(self.nameless) % 2 == 0
            code = "execution_failed" if is_odd else "invalid_input"
            return 200, self._error(asked, code, "tool.name is missing", field="tool.name")
        return 200, self._once(asked)

    def _is_let_in(self, key: str | None) -> bool:
        return self.does("let all in") or key == KEY or (self.does("let any key in") and bool(key))

    def _once(self, asked: Any) -> Any:
        request_id = str(asked.get("request_id"))
        if request_id not in self.answers or self.does("forget"):
            self.answers[request_id] = self._run(asked)
        return self.answers[request_id]

    def _run(self, asked: Any) -> Any:
        if asked["input"] == SLOW:
            self.is_sulking = self.does("sulk") and next(self.slow) == 2
            time.sleep(min(asked["runtime"]["timeout_ms"] / 1000, 0.6))
            if not self.does("ignore the time"):
                return self._error(asked, "timeout", "Too slow", retryable=True)
        if asked["input"] == FAIL:
            return self._error(asked, "execution_failed", "It broke", retryable="maybe" if self.does("shrug") else True)
        if asked["input"] == DENIED:
            told = self._error(asked, "permission_denied", "Not for you")
            return told if self.does("deny by error") else {**told, "status": "denied"}
        number = next(self.count)
        if (number > 1 and self.does("tire after one")) or self.does("never work"):
            return self._error(asked, "execution_failed", "Nothing is left")
        told = {**self._envelope(asked, "ok"), "output": {"result": "hello!", "n": number}}
        if not self.does("forget"):
            told["output"].pop("n")
        if self.does("list its output"):
            told["output"] = ["hello!"]
        if self.does("end in doubt"):
            told["error"] = self._error(asked, "execution_failed", "Or not")["error"]
        return told

    def _envelope(self, asked: Any, status: str) -> dict[str, Any]:
        told = {
            "tool_contract_version": "v1",
            "request_id": "mine" if self.does("number itself") else asked.get("request_id", ""),
            "status": status,
            "usage": {"attempt": 0 if self.does("miscount") else asked.get("attempt", 1), "duration_ms": 1.5},
            "trace": asked.get("trace", {}),
        }
        if self.does("name no version"):
            del told["tool_contract_version"]
        if self.does("lose the trace"):
            told["trace"] = {}
        if self.does("tell no time"):
            told["usage"].pop("duration_ms")
        return told

    def _error(self, asked: Any, code: str, message: str, retryable: Any = False, **details: Any) -> dict[str, Any]:
        error = {"code": code, "reason": f"tool_{code}", "retryable": retryable, "message": message, "details": details}
        if self.does("hope") and code == "invalid_input":
            error["retryable"] = True
        if self.does("be brief"):
            del error["reason"]
        return {**self._envelope(asked, "error"), "error": error}


@contextmanager
def external(tool: Tool) -> Iterator[str]:
    def act(session: Session) -> None:
        status, told = tool.respond(_read(session.asked.body), session.asked.headers["Authorization"])
        as_json(told, status)(session)

    with toolserver({"/": act}) as server:
        yield f"{server.url}/"


@contextmanager
def webhook(tool: Tool) -> Iterator[str]:
    """Takes every good request with 202, and knows the answer a little later."""
    ready: dict[str, tuple[float, Any]] = {}

    def act(session: Session) -> None:
        asked = _read(session.asked.body)
        status, told = tool.respond(asked, session.asked.headers["Authorization"])
        if status != 200 or told["status"] == "error":
            as_json(told, status)(session)
            return
        ready.setdefault(asked["request_id"], (time.monotonic() + 0.1, told))
        as_json({"status": "queued"}, 202)(session)

    class Doors(dict[str, Any]):
        def __missing__(self, path: str) -> Any:
            moment, told = ready.get(path.rpartition("/")[2], (0.0, None))
            if told is None and tool.does("know everything"):
                return as_json({"status": "ok", "output": {}})
            if told is None:
                return as_json({"message": "Never heard of it"}, 404)
            return as_json(told) if time.monotonic() >= moment else answer(b"", 204)

    with toolserver() as server:
        server.answers = Doors({"/jobs": act})
        yield f"{server.url}/jobs"


@contextmanager
def http(tool: Tool) -> Iterator[str]:
    """The same tool without any envelope."""

    def act(session: Session) -> None:
        headers, asked = session.asked.headers, _read(session.asked.body)
        if headers["Authorization"] != KEY:
            return as_json({"message": "Who are you?"}, 403)(session)
        if not isinstance(asked, dict):
            return as_json({"message": "No JSON"}, 500 if tool.does("crash on nonsense") else 422)(session)
        if asked == FAIL:
            return as_json({"message": "It broke"}, 503)(session)
        if tool.does("end in doubt"):
            return as_json({"status": "ok", "error": {"code": "x"}})(session)
        number = next(tool.count)
        if (number > 1 and tool.does("tire after one")) or tool.does("never work"):
            return as_json({"message": "Nothing is left"}, 409)(session)
        number = number if tool.does("forget") else 0
        return as_json({"status": "queued", "number": number})(session)

    with toolserver({"/": act}) as server:
        yield f"{server.url}/"


@contextmanager
def grpc(tool: Tool) -> Iterator[str]:
    async def act(server: Any, stream: Any, asked: Any) -> None:
        status, told = tool.respond(asked, server.metadata[-1].get("authorization"))
        if status != 200:
            named = {400: Status.INVALID_ARGUMENT, 401: Status.UNAUTHENTICATED, 503: Status.UNAVAILABLE}
            raise GRPCError(named.get(status, Status.INTERNAL), "No")
        await stream.send_message(json.dumps(told).encode())

    with grpcserver(act) as server:
        yield server.url


def _read(body: bytes) -> Any:
    try:
        return json.loads(body)
    except ValueError:
        return None
