"""Server-sent events: a Stream as the bytes of a response, which ends with it whoever goes first."""

import logging
import time
from collections.abc import Callable, Generator, Iterator, Mapping
from contextlib import suppress
from itertools import chain
from typing import Any

import orjson

from execution.protocols.mcp.exchange import Stream
from execution.protocols.mcp.rpcerrors import INTERNAL_ERROR, RpcError

KEEP_ALIVE = 1.0  # seconds of silence after which a comment is sent: only a write shows that the client is gone
COMMENT = b":\n\n"
HEADERS = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}
CONTENT_TYPE = "text/event-stream"

log = logging.getLogger(__name__)
Message = Mapping[str, Any] | None
Told = Callable[[Mapping[str, Any]], Mapping[str, Any]]  # a message as it is sent, with "jsonrpc" and an id


class Events(Iterator[bytes]):
    """The body of a response; close() comes from the server when the client goes away, else from the end itself."""

    def __init__(
        self, stream: Stream, told: Told, *, first: Mapping[str, Any] | None = None, opening: bytes = COMMENT
    ) -> None:
        """`first` is a message that was taken from the stream before."""
        self._messages = stream.messages
        self._pieces = _pieces(first, stream.messages, told, opening)
        self._is_open = True

    def __next__(self) -> bytes:
        try:
            return next(self._pieces)
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        if self._is_open:
            self._is_open = False
            with suppress(ValueError):  # it runs just now: its own end closes it
                self._pieces.close()
            close(self._messages)


def close(messages: Iterator[Any]) -> None:
    """Not every iterator needs to be told that nobody listens any more."""
    closing = getattr(messages, "close", None)
    if closing is not None:
        closing()


def _pieces(first: Message, messages: Iterator[Message], told: Told, opening: bytes) -> Generator[bytes]:
    yield opening  # the headers leave with it
    spoke = time.monotonic()
    try:
        for message in chain([first], messages):
            if message is not None:
                yield event(told(message))
            elif time.monotonic() - spoke >= KEEP_ALIVE:
                yield COMMENT
            else:
                continue
            spoke = time.monotonic()
    except RpcError as error:
        yield event(told({"error": error.as_error()}))
    except Exception:
        log.exception("a stream ended in a bug")
        yield event(told({"error": RpcError(INTERNAL_ERROR, "The tool server made a mistake").as_error()}))


def event(message: Mapping[str, Any]) -> bytes:
    return b"event: message\ndata: %b\n\n" % orjson.dumps(message, default=dict)
