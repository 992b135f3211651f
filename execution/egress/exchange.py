"""The only way out for HTTP: resolve, check, connect to what was checked, ask once, read no more than wanted."""

from collections.abc import Mapping
from dataclasses import dataclass

from execution.cancel import Cancel
from execution.egress import target as targets
from execution.egress import tls
from execution.egress.decoding import decoded
from execution.egress.errors import AnswerTooLarge, EgressError, EgressFailed, RedirectRefused
from execution.egress.headers import Headers
from execution.egress.http1 import Head, Reader, request_bytes
from execution.egress.line import Line, line
from execution.egress.target import Target
from execution.traffic import Traffic


@dataclass(frozen=True, slots=True, kw_only=True)
class Response:
    """What came back: any status but a redirect's."""

    status: int
    headers: Headers
    body: bytes
    traffic: Traffic

    def __repr__(self) -> str:
        return f"Response({self.status}, {len(self.body)} bytes)"


def request(
    method: str,
    url: str,
    *,
    headers: Mapping[str, str],
    body: bytes = b"",
    deadline: float,
    cancel: Cancel | None = None,
    max_bytes: int,
) -> Response:
    """The answer, or an EgressError that knows its traffic; `deadline` is a moment of time.monotonic()."""
    target = targets.parse(url)
    message = request_bytes(method, target, headers, body)
    with line(deadline=deadline, cancel=cancel) as opened:
        exchange = _Exchange(opened, max_bytes)
        try:
            return exchange.run(target, message)
        except EgressError as error:
            error.traffic = exchange.traffic
            raise


class _Exchange:
    def __init__(self, opened: Line, limit: int) -> None:
        self._line, self._limit, self._status = opened, limit, ""

    @property
    def traffic(self) -> Traffic:
        return Traffic(self._line.sent, self._line.received, self._status)

    def run(self, target: Target, message: bytes) -> Response:
        self._line.connect(target.host, target.port)
        if target.is_tls:
            self._line.secure(tls.context("http/1.1"), target.host)
        self._line.send(message)
        reader = Reader(self._line, self._limit)
        head = reader.head()
        self._status = str(head.status)
        if 300 <= head.status < 400:
            raise RedirectRefused(head.status)
        content = self._content(reader, head)
        return Response(status=head.status, headers=head.headers, body=content, traffic=self.traffic)

    def _content(self, reader: Reader, head: Head) -> bytes:
        try:
            return decoded(reader.body(head), head.headers.value("content-encoding"), self._limit)
        except (AnswerTooLarge, EgressFailed):
            if head.status < 400:
                raise
            return b""  # what is wrong is said by the status; the words to it are not worth another failure
