"""One HTTP/1.1 exchange on a line: what is read is bounded, and what is not exactly an answer is a failure."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from execution.egress.errors import AnswerTooLarge, EgressFailed
from execution.egress.headers import Headers, lines
from execution.egress.line import Line
from execution.egress.target import Target

MAX_HEAD = 65_536
MAX_LINE = 16_384
MAX_INTERIM = 8  # answers of the kind "go on", before the real one

_STATUS = re.compile(rb"HTTP/1\.[01] ([1-9][0-9]{2})(?: [\t -~\x80-\xff]*)?")
_FIELD = re.compile(rb"([!#$%&'*+.^_`|~0-9A-Za-z-]+):([\t -~\x80-\xff]*)")
_CHUNK = re.compile(rb"([0-9A-Fa-f]{1,15})[ \t]*(?:;[\t -~\x80-\xff]{0,255})?")


class Head(NamedTuple):
    status: int
    headers: Headers


def request_bytes(method: str, target: Target, headers: Mapping[str, str], body: bytes) -> bytes:
    """The whole request; checked here, before anyone is connected to."""
    own = [f"{method} {target.path} HTTP/1.1\r\nHost: {target.authority}\r\n".encode("ascii")]
    own += [b"Connection: close\r\nAccept-Encoding: identity\r\n"]
    if body or method != "GET":
        own += [f"Content-Length: {len(body)}\r\n".encode("ascii")]
    return b"".join([*own, *lines(headers), b"\r\n", body])


@dataclass(slots=True)
class Reader:
    """Takes an answer off a line piece by piece and never holds more than a piece of what it did not ask for."""

    line: Line
    limit: int
    buffer: bytes = b""
    at: int = 0  # how far the buffer was read; cutting it for every small chunk would cost more than reading it
    head_left: int = MAX_HEAD

    def head(self) -> Head:
        for _ in range(MAX_INTERIM):
            found = _STATUS.fullmatch(self._text())
            if found is None:
                raise _broken("it does not begin as an HTTP answer does")
            status, headers = int(found[1]), self._fields()
            if status >= 200:
                return Head(status, headers)
            if status == 101:
                raise _broken("it wants to speak another protocol")
        raise _broken("it never comes to the point")

    def body(self, head: Head) -> Iterator[bytes]:
        """The content as it came, still encoded, within the limit."""
        length, coding = head.headers.get("content-length"), head.headers.get("transfer-encoding")
        if head.status in (204, 304):
            return iter(())
        if coding is not None:
            if coding.strip().lower() != "chunked" or length is not None:
                raise _broken("it is not clear where it ends")
            return self._bounded(self._chunks())
        if length is None:
            return self._bounded(self._rest())
        lengths = {part.strip() for part in length.split(",")}
        size = lengths.pop()
        if lengths or not (size.isascii() and size.isdecimal()) or len(size) > 18:
            raise _broken("it is not clear where it ends")
        if int(size) > self.limit:
            raise AnswerTooLarge(self.limit)
        return self._exactly(int(size))

    def _bounded(self, pieces: Iterator[bytes]) -> Iterator[bytes]:
        size = 0
        for piece in pieces:
            size += len(piece)
            if size > self.limit:
                raise AnswerTooLarge(self.limit)
            yield piece

    def _rest(self) -> Iterator[bytes]:
        while piece := self._piece():
            yield piece

    def _exactly(self, size: int) -> Iterator[bytes]:
        while size:
            piece = self._piece(size)
            if not piece:
                raise _broken("it ends too early")
            size -= len(piece)
            yield piece

    def _chunks(self) -> Iterator[bytes]:
        while True:
            found = _CHUNK.fullmatch(self._text(is_head=False))
            if found is None:
                raise _broken("one of its chunks has no size")
            size = int(found[1], 16)
            if not size:
                self._fields()  # trailers, which nobody asked for
                return
            if size > self.limit:
                raise AnswerTooLarge(self.limit)
            yield from self._exactly(size)
            if self._text(is_head=False):
                raise _broken("one of its chunks is longer than it said")

    def _fields(self) -> Headers:
        headers = Headers()
        while line := self._text():
            found = _FIELD.fullmatch(line)
            if found is None:
                raise _broken("one of its headers is not one")
            headers.add(found[1].decode("ascii"), found[2].strip(b" \t").decode("latin-1"))
        return headers

    def _text(self, *, is_head: bool = True) -> bytes:
        """The next line without its end."""
        while (end := self.buffer.find(b"\n", self.at)) < 0:
            if len(self.buffer) - self.at > MAX_LINE:
                raise _broken("one of its lines is too long")
            piece = self.line.receive()
            if not piece:
                raise _broken("it ends too early" if self.line.received else "there is none: the connection was closed")
            self.buffer, self.at = self.buffer[self.at :] + piece, 0
        line, self.at = self.buffer[self.at : end], end + 1
        if is_head:
            self.head_left -= len(line) + 1
        if len(line) > MAX_LINE or self.head_left < 0:
            raise _broken("its headers are too long")
        return line.removesuffix(b"\r")

    def _piece(self, most: int | None = None) -> bytes:
        """Some bytes of the content, at most so many; none at its end."""
        if self.at == len(self.buffer):
            self.buffer, self.at = self.line.receive(), 0
        start = self.at
        self.at = len(self.buffer) if most is None else min(len(self.buffer), start + most)
        return self.buffer[start : self.at]


def _broken(why: str) -> EgressFailed:
    return EgressFailed(f"the answer is broken: {why}", True)
