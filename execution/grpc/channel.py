"""One unary call on a connection of its own that the egress guard opened; deadline and cancel hold throughout."""

import math
import ssl
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import NoReturn

from grpclib.const import Status
from h2.config import H2Configuration
from h2.connection import ConnectionState, H2Connection
from h2.errors import ErrorCodes
from h2.events import (
    ConnectionTerminated,
    DataReceived,
    Event,
    ResponseReceived,
    StreamEnded,
    StreamReset,
    TrailersReceived,
)
from h2.settings import SettingCodes, Settings
from hpack import HeaderTuple

from execution.cancel import Cancel
from execution.egress import AnswerTooLarge, EgressError, EgressFailed, tls_context
from execution.egress.line import Line, line
from execution.grpc import codec, metadata, place
from execution.grpc.place import Place
from execution.traffic import Traffic

MAX_FRAMES = 20_000
MAX_CHATTER = 1_000_000  # bytes that may come besides an answer: frames, pings, headers
_FRAME = 9  # bytes before the content of a frame
_STREAM = 1  # of a client's connection the first, and here the only one
# How a proxy's status on the way is told, as gRPC has it.
_BY_HTTP = {
    "400": Status.INTERNAL,
    "401": Status.UNAUTHENTICATED,
    "403": Status.PERMISSION_DENIED,
    "404": Status.UNIMPLEMENTED,
    "429": Status.UNAVAILABLE,
    "502": Status.UNAVAILABLE,
    "503": Status.UNAVAILABLE,
    "504": Status.UNAVAILABLE,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """What came back: a status, and the message if the status is OK."""

    status: Status
    message: str = ""
    body: bytes = b""
    content_type: str = ""
    metadata: Mapping[str, str] = field(default_factory=dict)
    traffic: Traffic

    def __repr__(self) -> str:
        return f"Reply({self.status.name}, {len(self.body)} bytes)"


def ask(
    endpoint: str,
    method: str,
    message: bytes,
    *,
    headers: Mapping[str, str],
    deadline: float,
    cancel: Cancel | None = None,
    max_bytes: int,
) -> Reply:
    """The reply, or an EgressError that knows its traffic; `headers` travel as metadata."""
    target, brought = place.parse(endpoint), metadata.sent(headers)
    with line(deadline=deadline, cancel=cancel) as opened:
        conversation = _Conversation(opened, max_bytes)
        try:
            conversation.open(target)
            timeout = max(1, math.ceil((deadline - time.monotonic()) * 1000))
            conversation.say([*_own(target, method, timeout), *brought], message)
            return conversation.reply()
        except EgressError as error:
            conversation.hang_up()
            error.traffic = conversation.traffic
            raise


def _own(target: Place, method: str, timeout: int) -> list[tuple[str, str]]:
    return [
        (":method", "POST"),
        (":scheme", target.scheme),
        (":path", method),
        (":authority", target.authority),
        ("te", "trailers"),
        ("content-type", codec.CONTENT_TYPE),
        ("grpc-timeout", f"{min(timeout, 99_999_999)}m"),
    ]


class _Conversation:
    def __init__(self, opened: Line, limit: int) -> None:
        self._line, self._limit = opened, limit
        self._h2 = H2Connection(H2Configuration(client_side=True, header_encoding=False))
        self._h2.local_settings = Settings(client=True, initial_values={SettingCodes.ENABLE_PUSH: 0})
        self._rest = memoryview(b"")
        self._wire = bytearray()  # what came of a frame that is not whole yet
        self._heard = 0  # frames
        self._body = bytearray()
        self._headers: dict[str, str] = {}
        self._trailers: dict[str, str] = {}
        self._is_over = False
        self._is_in_frame = False  # what was sent last may have been cut anywhere
        self._status = ""

    @property
    def traffic(self) -> Traffic:
        return Traffic(self._line.sent, self._line.received, self._status)

    def open(self, target: Place) -> None:
        self._line.connect(target.host, target.port)
        if not target.is_tls:
            return
        self._line.secure(tls_context("h2"), target.host)
        secured = self._line.socket
        if not isinstance(secured, ssl.SSLSocket) or secured.selected_alpn_protocol() != "h2":
            raise EgressFailed(f"{target.host} does not offer HTTP/2", False, can_retry=False)

    def say(self, headers: Iterable[tuple[str, str] | HeaderTuple], message: bytes) -> None:
        """Sends and listens in turns until the answer is complete, or what remains to be sent is not wanted."""
        self._h2.initiate_connection()
        self._h2.send_headers(_STREAM, headers)
        self._rest = memoryview(codec.framed(message))
        while True:
            self._queue()
            self._flush()
            if self._is_over:
                return
            self._hear(self._line.receive())

    def hang_up(self) -> None:
        """Tells the server that nobody waits any more, if that can be told without waiting."""
        connection = self._line.socket
        if connection is None or not self._line.is_sent or self._is_in_frame:
            return
        with suppress(Exception):  # the call has failed already, and the server will see the connection close
            self._h2.reset_stream(_STREAM, ErrorCodes.CANCEL)
            connection.send(self._h2.data_to_send())

    def reply(self) -> Reply:
        status = self._judged()
        self._status = status.name
        said = self._trailers or self._headers
        body = b""
        if status is Status.OK:
            try:
                body = codec.unframed(bytes(self._body))
            except codec.BadMessage as error:
                raise EgressFailed(f"the answer is not one message: {error}", True) from error
        return Reply(
            status=status,
            message=metadata.message_of(said),
            body=body,
            content_type=self._headers.get("content-type", ""),
            metadata=said,
            traffic=self.traffic,
        )

    def _judged(self) -> Status:
        """The status that was said, or what the want of one means."""
        http = self._headers.get(":status", "")
        said = (self._trailers or self._headers).get("grpc-status", "")
        if http != "200" and not said:
            return _BY_HTTP.get(http, Status.UNKNOWN)
        try:
            return Status(int(said)) if said.isascii() and said.isdecimal() and len(said) < 4 else Status.UNKNOWN
        except ValueError:
            return Status.UNKNOWN

    def _queue(self) -> None:
        while self._rest and not self._is_over:
            size = min(len(self._rest), self._h2.local_flow_control_window(_STREAM), self._h2.max_outbound_frame_size)
            if size <= 0:
                return
            self._h2.send_data(_STREAM, self._rest[:size].tobytes(), end_stream=size == len(self._rest))
            self._rest = self._rest[size:]

    def _flush(self) -> None:
        if data := self._h2.data_to_send():
            self._is_in_frame = True
            self._line.send(data)
            self._is_in_frame = False

    def _hear(self, data: bytes) -> None:
        if not data:
            self._broken("it closed the connection before the answer was complete")
        if self._line.received > 2 * self._limit + MAX_CHATTER:
            self._broken("it talks without ever answering")
        try:
            for frame in self._frames(data):
                for event in self._h2.receive_data(frame):
                    self._take(event)
        except EgressError:
            raise
        except Exception as error:  # the other side's bytes: whatever a reader stumbles over is their fault
            self._broken(f"it does not speak HTTP/2 as it should ({type(error).__name__})", error)

    def _frames(self, data: bytes) -> Iterator[bytes]:
        """Each frame as soon as it is whole, so that what one of them means is known before the next is read."""
        self._wire += data
        while len(self._wire) >= _FRAME:
            size = int.from_bytes(self._wire[:3], "big")
            if size > self._h2.max_inbound_frame_size:
                self._broken("it does not speak HTTP/2, or its frames are larger than agreed")
            if len(self._wire) < _FRAME + size:
                return
            frame = bytes(self._wire[: _FRAME + size])
            del self._wire[: _FRAME + size]
            self._heard += 1
            if self._heard > MAX_FRAMES:
                self._broken("it talks without ever answering")
            self._line.check()  # thousands of the smallest frames come in one piece
            yield frame

    def _take(self, event: Event) -> None:
        match event:
            case ResponseReceived():
                self._headers = metadata.received(event.headers)
            case TrailersReceived():
                self._trailers = metadata.received(event.headers)
            case DataReceived():
                self._body += event.data
                self._measure()
                self._h2.acknowledge_received_data(event.flow_controlled_length, _STREAM)
            case StreamEnded():
                self._is_over = True
            case StreamReset() if not self._is_over:
                self._broken(f"it broke off the call (HTTP/2 error {int(event.error_code)})")
            case ConnectionTerminated() if not self._is_over:
                if event.error_code or (event.last_stream_id or 0) < _STREAM:
                    self._broken(f"it ended the connection (HTTP/2 error {int(event.error_code or 0)})")
                # A server that is about to stop still answers what it has; h2 would hear no more of it.
                self._h2.state_machine.state = ConnectionState.CLIENT_OPEN

    def _measure(self) -> None:
        """Looks at the length that a message claims before the rest of it comes."""
        claimed = int.from_bytes(self._body[1 : codec.PREFIX], "big") if len(self._body) >= codec.PREFIX else 0
        if max(claimed, len(self._body) - codec.PREFIX) > self._limit:
            raise AnswerTooLarge(self._limit)

    def _broken(self, why: str, cause: Exception | None = None) -> NoReturn:
        raise EgressFailed(f"the server cannot be used: {why}", True) from cause
