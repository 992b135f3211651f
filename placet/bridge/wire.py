"""One HTTP exchange: a request goes out, messages come back, as one JSON text or as a stream of events."""

from __future__ import annotations

import contextlib
import http.client
import json
import socket
import ssl
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from placet.bridge.address import Address, Key

CONNECT = 10.0  # seconds
PATIENCE = 600.0  # seconds of silence; a stream that lives sends comments much more often
MAX_MESSAGE = 32_000_000
_BROKEN = (OSError, http.client.HTTPException, ValueError, AttributeError)  # the last two: closed while being read


class Unreachable(Exception):
    """Nothing came back; `is_sent` tells whether the request may have arrived."""

    def __init__(self, why: str, *, is_sent: bool) -> None:
        super().__init__(why)
        self.is_sent = is_sent


@dataclass
class Event:
    """One event of a stream."""

    data: str = ""
    id: str | None = None
    retry: int | None = None


class Exchange:
    """A request and its answer; `close` may be called by another thread, and wakes whoever reads."""

    def __init__(self, address: Address, key: Key, *, patience: float = PATIENCE) -> None:
        self._address, self._key, self._patience = address, key, patience
        self._connection: http.client.HTTPConnection | None = None
        self._socket: socket.socket | None = None
        self._response: http.client.HTTPResponse | None = None
        self.status = 0
        self.is_closed = False

    def send(self, method: str, headers: Mapping[str, str], body: bytes | None = None) -> int:
        """The status of the answer, whose body is then read with `events` or `text`."""
        is_sent = False
        try:
            self._connect()
            assert self._connection is not None
            is_sent = True
            self._connection.request(method, self._address.path, body, self._headers(headers))
            self._response = self._connection.getresponse()
        except _BROKEN as error:
            self.close()
            raise Unreachable(_why(error), is_sent=is_sent) from error
        if self.is_closed:
            raise Unreachable("it was closed", is_sent=True)
        self.status = self._response.status
        return self.status

    def header(self, name: str) -> str:
        return (self._response.getheader(name) if self._response is not None else None) or ""

    @property
    def is_stream(self) -> bool:
        return self.header("Content-Type").partition(";")[0].strip().lower() == "text/event-stream"

    def text(self) -> str:
        """The whole body."""
        assert self._response is not None
        try:
            content = self._response.read(MAX_MESSAGE + 1)
        except _BROKEN as error:
            raise Unreachable(_why(error), is_sent=True) from error
        finally:
            self.close()
        if len(content) > MAX_MESSAGE:
            raise Unreachable(f"the answer is longer than {MAX_MESSAGE} bytes", is_sent=True)
        return content.decode("utf-8", "replace")

    def events(self) -> Iterator[Event]:
        """The events of a stream until it ends, which is not an error by itself."""
        event, size = Event(), 0
        while line := self._line():
            size += len(line)
            if size > MAX_MESSAGE:
                raise Unreachable(f"an event is longer than {MAX_MESSAGE} bytes", is_sent=True)
            text = line.decode("utf-8", "replace").rstrip("\r\n")
            if not text:
                yield Event(event.data.removesuffix("\n"), event.id, event.retry)
                event, size = Event(), 0
            else:
                _take(event, text)

    def close(self) -> None:
        """Whatever was to come is not wanted any more."""
        self.is_closed = True
        with contextlib.suppress(*_BROKEN):
            if self._socket is not None:
                self._socket.shutdown(socket.SHUT_RDWR)
        with contextlib.suppress(*_BROKEN):
            if self._connection is not None:
                self._connection.close()

    def _connect(self) -> None:
        host, port = self._address.host, self._address.port
        if self._address.is_tls:
            context = ssl.create_default_context()
            self._connection = http.client.HTTPSConnection(
                host, port, timeout=min(CONNECT, self._patience), context=context
            )
        else:
            self._connection = http.client.HTTPConnection(host, port, timeout=min(CONNECT, self._patience))
        self._connection.connect()
        self._socket = self._connection.sock
        if self.is_closed:
            raise OSError("it was closed")
        self._socket.settimeout(self._patience)

    def _headers(self, more: Mapping[str, str]) -> dict[str, str]:
        headers = {"User-Agent": "placet-mcp", "Connection": "close", **more}
        if self._key.value:
            headers["Authorization"] = f"Bearer {self._key.value}"
        return headers

    def _line(self) -> bytes:
        assert self._response is not None
        try:
            return self._response.readline(MAX_MESSAGE + 1)
        except _BROKEN as error:
            self.close()
            raise Unreachable(_why(error), is_sent=True) from error


def _take(event: Event, line: str) -> None:
    """One field; a line that begins with a colon is a comment."""
    name, _, value = line.partition(":")
    value = value.removeprefix(" ")
    if name == "data":
        event.data += value + "\n"
    elif name == "id" and "\0" not in value:
        event.id = value
    elif name == "retry" and value.isascii() and value.isdigit():
        event.retry = int(value)


def one_line(text: str) -> str | None:
    """A JSON text as one line, unchanged where it is one already; None if it is no JSON."""
    try:
        read = json.loads(text)
    except (ValueError, RecursionError):
        return None
    text = text.strip()
    return text if "\n" not in text and "\r" not in text else json.dumps(read, separators=(",", ":"))


def _why(error: BaseException) -> str:
    if isinstance(error, ssl.SSLCertVerificationError):
        return f"its certificate is not trusted: {error.verify_message}"
    if isinstance(error, TimeoutError):
        return "it did not answer in time"
    if isinstance(error, OSError) and error.strerror:
        return error.strerror
    return str(error) or type(error).__name__
