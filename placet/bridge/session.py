"""The session of the older wire: opened by the client's own initialize, and opened again with it when it is lost."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Mapping
from typing import Any, Protocol

from placet.bridge.wire import Exchange

INITIALIZED = {"jsonrpc": "2.0", "method": "notifications/initialized"}


class Lost(Exception):
    """The session is gone and could not be opened again."""


class Post(Protocol):
    """Send a body and return the exchange with its status known."""

    def __call__(self, body: bytes, headers: Mapping[str, str]) -> tuple[int, Exchange]: ...


class Session:
    """What later messages must carry; threads share it."""

    def __init__(self, post: Post, log: Callable[[str], None]) -> None:
        self._post, self._log = post, log
        self._initialize: Mapping[str, Any] | None = None
        self._lock = threading.Lock()
        self._renewals = 0
        self.id = ""
        self.version = ""

    @property
    def is_open(self) -> bool:
        return bool(self.version)

    def headers(self) -> dict[str, str]:
        known = {"MCP-Session-Id": self.id, "MCP-Protocol-Version": self.version}
        return {name: value for name, value in known.items() if value}

    def opened(self, initialize: Mapping[str, Any], result: Any, id: str) -> None:
        """The server has answered the client's initialize."""
        version = result.get("protocolVersion") if isinstance(result, dict) else None
        if isinstance(version, str):
            with self._lock:
                self._initialize, self.id, self.version = initialize, id, version

    def renew(self, lost: str) -> bool:
        """Open the session anew unless another thread has; False if there is nothing to open it with."""
        with self._lock:
            if self._initialize is None:
                return False
            if self.id != lost:
                return True
            self._renewals += 1
            again = {**self._initialize, "id": f"placet-mcp-{self._renewals}"}
            status, exchange = self._post(json.dumps(again).encode(), {})
            answer = _answer(exchange)
            result = answer.get("result")
            if status != 200 or not isinstance(result, dict) or not isinstance(result.get("protocolVersion"), str):
                raise Lost(f"the session ended, and initialize was answered with {status} {answer.get('error') or ''}")
            self.id, self.version = exchange.header("MCP-Session-Id"), result["protocolVersion"]
            _, done = self._post(json.dumps(INITIALIZED).encode(), self.headers())
            done.close()
            self._log("the session was gone and has been opened again")
            return True


def _answer(exchange: Exchange) -> dict[str, Any]:
    """The response in an exchange of which nothing else is expected."""
    texts = (event.data for event in exchange.events()) if exchange.is_stream else iter([exchange.text()])
    for text in texts:
        try:
            read = json.loads(text)
        except ValueError:
            continue
        if isinstance(read, dict) and "id" in read:
            exchange.close()
            return read
    return {}
