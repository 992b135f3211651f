"""An answer that is read as it comes: the same way out, with the same checks, limits and deadline."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from execution.cancel import Cancel
from execution.egress import target as targets
from execution.egress import tls
from execution.egress.decoding import decoded
from execution.egress.errors import EgressError, EgressFailed, RedirectRefused
from execution.egress.headers import Headers
from execution.egress.http1 import Head, Reader, request_bytes
from execution.egress.line import Line, line
from execution.traffic import Traffic


class Stream:
    """A status and headers that are there, and content that is still coming."""

    def __init__(self, opened: Line, reader: Reader, head: Head, limit: int) -> None:
        self._line, self._reader, self._head, self._limit = opened, reader, head, limit

    @property
    def status(self) -> int:
        return self._head.status

    @property
    def headers(self) -> Headers:
        return self._head.headers

    @property
    def traffic(self) -> Traffic:
        return Traffic(self._line.sent, self._line.received, str(self.status))

    def pieces(self) -> Iterator[bytes]:
        """The content as it comes; a packed one is refused, for nobody asked for it."""
        if self.headers.value("content-encoding").strip().lower() not in ("", "identity"):
            raise EgressFailed("the answer is packed in a way that was not asked for", True, can_retry=False)
        return self._reader.body(self._head)

    def whole(self) -> bytes:
        return decoded(self._reader.body(self._head), self.headers.value("content-encoding"), self._limit)


@contextmanager
def stream(
    method: str,
    url: str,
    *,
    headers: Mapping[str, str],
    body: bytes = b"",
    deadline: float,
    cancel: Cancel | None = None,
    max_bytes: int,
) -> Iterator[Stream]:
    """The answer from its beginning; leaving the block ends the connection. Failures know their traffic."""
    target = targets.parse(url)
    message = request_bytes(method, target, headers, body)
    with line(deadline=deadline, cancel=cancel) as opened:
        status = ""
        try:
            opened.connect(target.host, target.port)
            if target.is_tls:
                opened.secure(tls.context("http/1.1"), target.host)
            opened.send(message)
            reader = Reader(opened, max_bytes)
            head = reader.head()
            status = str(head.status)
            if 300 <= head.status < 400:
                raise RedirectRefused(head.status)
            yield Stream(opened, reader, head, max_bytes)
        except EgressError as error:
            error.traffic = Traffic(opened.sent, opened.received, status)
            raise
