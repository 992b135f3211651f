"""SessionClient: the session API of a Placet server, spoken with the standard library alone."""

import http.client
import json
import socket
import ssl
import threading
import time
from contextlib import suppress
from typing import Any, NamedTuple
from urllib.parse import quote, urlsplit

PATIENCE = 10.0  # seconds for an answer, besides those that a poll may wait
MAX_ANSWER = 64_000_000


class Away(Exception):
    """The server did not answer, or is busy: the same can be asked again."""


class Refused(Exception):
    """The server answered, and it was no."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


class Taken(NamedTuple):
    """A request in the hands of a session; both are texts that mean nothing to us."""

    session: str
    request: str


class SessionClient:
    """What one agent asks; each thread has a connection of its own."""

    def __init__(self, url: str, key: str) -> None:
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname or parts.query or parts.fragment:
            raise ValueError(f"{url!r} is not the http or https address of a Placet server")
        self._parts = parts
        self._base = parts.path.rstrip("/")
        self._headers = {"Authorization": f"Bearer {key}", "Content-Type": "application/json", "Host": parts.netloc}
        self._own = threading.local()
        self._lock = threading.Lock()
        self._waiting: http.client.HTTPConnection | None = None

    def open(self, toolkit: str) -> dict[str, Any]:
        opened: dict[str, Any] = self._ask("POST", "/v1/sessions", {"serves": [toolkit]})
        return opened

    def close(self, session: str) -> None:
        """Gives back what the session holds."""
        self._ask("DELETE", f"/v1/sessions/{_quoted(session)}")

    def pending(self, session: str, *, wait: float, limit: int) -> list[dict[str, Any]]:
        """What there is to take, as soon as there is something; `hang_up` ends the wait."""
        patience = PATIENCE + wait
        with self._lock:
            self._waiting = self._connection(patience)
        try:
            query = f"?state=PENDING&wait={wait:g}&limit={limit}"
            requests: list[dict[str, Any]] = self._page(session, query, patience=patience)["requests"]
            return requests
        finally:
            with self._lock:
                self._waiting = None

    def held(self, taken: Taken) -> dict[str, Any]:
        """A request that the session took, with what its caller brought for the tool; Refused if it has lost it."""
        query = "?state=PROCESSING&limit=50"
        after: str | None = ""
        while after is not None:
            page = self._page(taken.session, query + (f"&after={_quoted(after)}" if after else ""))
            for each in page["requests"]:
                if each["requestId"] == taken.request:
                    found: dict[str, Any] = each
                    return found
            after = page.get("next")
        raise Refused(404, "the session does not hold the request any more")

    def beat(self, taken: Taken) -> None:
        alive = {"state": "PROCESSING", "heartbeat": round(time.time() * 1000)}
        self._ask("POST", f"/v1/tools/request/{_path(taken)}/heartbeat", alive)

    def fail(self, taken: Taken, error: dict[str, Any]) -> None:
        self._ask("POST", f"/v1/tools/request/{_path(taken)}/heartbeat", {"state": "ERROR", **error})

    def respond(self, taken: Taken, fields: dict[str, Any]) -> None:
        self._ask("POST", f"/v1/tools/response/{_path(taken)}", {"response": {**fields, "state": "COMPLETE"}})

    def leave(self) -> None:
        """For a thread that asks nothing more: its connection ends."""
        connection: http.client.HTTPConnection | None = getattr(self._own, "connection", None)
        if connection is not None:
            connection.close()
            self._own.connection = None

    def hang_up(self) -> None:
        """Whoever waits for work stops waiting; whoever says something is not disturbed."""
        with self._lock:
            if self._waiting is not None and self._waiting.sock is not None:
                with suppress(OSError):
                    self._waiting.sock.shutdown(socket.SHUT_RDWR)

    def _page(self, session: str, query: str, *, patience: float = PATIENCE) -> Any:
        return self._ask("GET", f"/v1/sessions/{_quoted(session)}/requests{query}", patience=patience)

    def _ask(self, method: str, path: str, body: Any = None, *, patience: float = PATIENCE) -> Any:
        content = None if body is None else json.dumps(body, ensure_ascii=False, allow_nan=False).encode()
        connection = self._connection(patience)
        try:
            connection.request(method, self._base + path, content, self._headers)
            response = connection.getresponse()
            told = response.read(MAX_ANSWER)
        except (OSError, http.client.HTTPException) as error:
            self.leave()
            raise Away(f"{type(error).__name__}: {error}") from error
        if response.status >= 500:
            raise Away(f"the server answered {response.status}")
        return _read(response.status, told)

    def _connection(self, patience: float) -> http.client.HTTPConnection:
        connection: http.client.HTTPConnection | None = getattr(self._own, "connection", None)
        if connection is None:
            host, port = self._parts.hostname or "", self._parts.port
            if self._parts.scheme == "https":
                context = ssl.create_default_context()
                connection = http.client.HTTPSConnection(host, port, timeout=patience, context=context)
            else:
                connection = http.client.HTTPConnection(host, port, timeout=patience)
            self._own.connection = connection
        connection.timeout = patience
        if connection.sock is not None:
            connection.sock.settimeout(patience)
        return connection


def _quoted(text: str) -> str:
    return quote(text, safe="")


def _path(taken: Taken) -> str:
    return f"{_quoted(taken.session)}/{_quoted(taken.request)}"


def _read(status: int, told: bytes) -> Any:
    try:
        body = json.loads(told) if told else None
    except ValueError:
        raise Away(f"the server answered {status} with something else than JSON") from None
    if status < 300:
        return body
    error = body.get("error") if isinstance(body, dict) else None
    message = error.get("message") if isinstance(error, dict) else None
    raise Refused(status, str(message or f"the server answered {status}"))
