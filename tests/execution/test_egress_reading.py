"""The reader of answers against anything at all: an answer or a failure, the same however the bytes are cut."""

import time
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from execution.egress.decoding import decoded
from execution.egress.errors import EgressError
from execution.egress.http1 import Reader

LIMIT = 50
_PART = st.sampled_from(
    [
        b"HTTP/1.1 200 OK\r\n",
        b"HTTP/1.1 100 Continue\r\n",
        b"HTTP/1.0 404\n",
        b"Content-Length: 5\r\n",
        b"Content-Length: 60\r\n",
        b"Transfer-Encoding: chunked\r\n",
        b"Content-Encoding: gzip\r\n",
        b"X: y\r\n",
        b"\r\n",
        b"\n",
        b"5\r\nhello\r\n",
        b"0\r\n",
        b"ffffffffffffffff\r\n",
        b"hello",
        b" ",
        b":",
        b"\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\x03\xcbH\xcd\xc9\xc9\x07\x00\x86\xa6\x106\x05\x00\x00\x00",
    ]
)
ANSWERS = st.lists(st.one_of(_PART, st.binary(max_size=8)), max_size=12).map(b"".join)
LIKELY = ANSWERS.map(lambda rest: b"HTTP/1.1 200 OK\r\n" + rest)


class Pieces:
    """Stands for a line: hands out the bytes in pieces of this size, then the end."""

    def __init__(self, data: bytes, size: int) -> None:
        self._pieces = [data[start : start + size] for start in range(0, len(data), size)]
        self.received = 0

    def receive(self) -> bytes:
        piece = self._pieces.pop(0) if self._pieces else b""
        self.received += len(piece)
        return piece


def outcome(data: bytes, size: int) -> Any:
    line: Any = Pieces(data, size)
    reader = Reader(line, LIMIT)
    try:
        head = reader.head()
        return head, decoded(reader.body(head), head.headers.value("content-encoding"), LIMIT)
    except EgressError:
        return None  # which of two faults is met first may depend on the cut


@settings(max_examples=400, deadline=None)
@given(st.one_of(ANSWERS, LIKELY), st.integers(1, 30))
def test_whatever_comes_back_is_an_answer_or_a_failure_however_it_is_cut(data: bytes, size: int) -> None:
    whole = outcome(data, len(data) or 1)
    assert outcome(data, size) == whole
    if whole is not None:
        assert len(whole[1]) <= LIMIT


@pytest.mark.parametrize("end", [b"", b"x", b"\x00"])
def test_a_header_of_nothing_but_spaces_takes_bounded_time(end: bytes) -> None:
    data = b"HTTP/1.1 200 OK\r\nA:" + b" " * 16_000 + end + b"\r\nContent-Length: 0\r\n\r\n"
    start = time.process_time()
    read = outcome(data, len(data))
    assert time.process_time() - start < 0.5
    assert (read and read[0].headers.value("A")) == (None if end == b"\x00" else end.decode())


def test_the_parts_above_do_make_answers() -> None:
    body = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n"
    assert outcome(body, 3)[1] == b"hello"
    packed = (
        b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\n\r\n"
        b"\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\x03\xcbH\xcd\xc9\xc9\x07\x00\x86\xa6\x106\x05\x00\x00\x00"
    )
    assert outcome(packed, 7)[1] == b"hello"
