"""A tool that takes calls and answers later: it remembers what it was given, and says what a test tells it to say."""

from __future__ import annotations

import hashlib
import hmac
import json
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from tests.services.toolserver import Answer, Asked, Session, ToolServer, answer, as_json, toolserver

ACCEPTED: Answer = answer(b"", 202)
PATH = "/jobs"


class WebhookTool:
    """Behind one path for requests and one below it for each look; `ask` and `poll` are how it answers them."""

    def __init__(self, server: ToolServer) -> None:
        self.server = server
        self.ask: Answer = ACCEPTED
        self.poll: Answer = ACCEPTED
        server.answers[PATH] = lambda session: self.ask(session)

    @property
    def endpoint(self) -> str:
        return self.server.url + PATH

    def knows(self, request_id: str) -> None:
        """From now on looks for this request are answered."""
        self.server.answers[f"{PATH}/{request_id}"] = lambda session: self.poll(session)

    @property
    def asked(self) -> list[Asked]:
        return [asked for asked in self.server.asked if asked.method == "POST"]

    @property
    def polls(self) -> list[Asked]:
        return [asked for asked in self.server.asked if asked.method == "GET"]

    @property
    def token(self) -> str:
        """What the newest request brought."""
        return str(self.asked[-1].headers["X-Placet-Callback-Token"])


def ok(value: Any, **more: Any) -> dict[str, Any]:
    return {"tool_contract_version": "v1", "status": "ok", "output": value, **more}


def failed(message: str, *, retryable: bool = False) -> dict[str, Any]:
    error = {"code": "execution_failed", "reason": "tool_backend_failure", "retryable": retryable, "message": message}
    return {"status": "error", "error": {**error, "details": {}}}


def signed(token: str, body: bytes, *, at: float | None = None) -> dict[str, str]:
    """The headers of a signed answer."""
    moment = str(int(time.time() if at is None else at))
    digest = hmac.new(token.encode(), moment.encode() + b"." + body, hashlib.sha256).hexdigest()
    return {"X-Signature": f"sha256={digest}", "X-Timestamp": moment}


def saying(value: Any, status: int = 200) -> Answer:
    """A poll's or a request's answer as JSON."""
    return as_json(value, status)


def echoing_headers(*names: str) -> Answer:
    """An immediate answer that tells what it was sent."""

    def act(session: Session) -> None:
        as_json(ok({name: session.asked.headers[name] for name in names}))(session)

    return act


def encoded(response: Any) -> bytes:
    return json.dumps(response).encode()


@contextmanager
def webhooktool() -> Iterator[WebhookTool]:
    with toolserver() as server:
        yield WebhookTool(server)
