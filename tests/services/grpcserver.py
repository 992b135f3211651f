"""A gRPC server on loopback that answers as a test tells it to, and one that says any bytes at all."""

from __future__ import annotations

import asyncio
import contextlib
import json
import socket
import ssl
import threading
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from typing import Any

from grpclib.const import Cardinality, Handler, Status
from grpclib.encoding.base import CodecBase
from grpclib.exceptions import GRPCError
from grpclib.server import Server, Stream

METHOD = "/orloj.tool.v1.ToolService/Execute"
PATIENCE = 20.0

Act = Callable[["GrpcServer", "Stream[bytes, bytes]", Any], Awaitable[None]]


class Bytes(CodecBase):
    """JSON on the wire, bytes in a test's hands; written here once more, so that it does not share our mistakes."""

    __content_subtype__ = "json"

    def encode(self, message: bytes, message_type: Any) -> bytes:
        return message

    def decode(self, data: bytes, message_type: Any) -> bytes:
        return data


class GrpcServer:
    """One method, one way to answer it; what was asked is kept."""

    def __init__(self, act: Act, context: ssl.SSLContext | None = None) -> None:
        self.act = act
        self.context = context
        self.asked: list[Any] = []
        self.metadata: list[dict[str, str]] = []
        self.timeouts: list[float | None] = []
        self.is_cancelled = threading.Event()
        self.port = 0

    @property
    def url(self) -> str:
        return f"{'grpcs' if self.context else 'grpc'}://127.0.0.1:{self.port}"

    def __mapping__(self) -> dict[str, Handler]:
        return {METHOD: Handler(self._execute, Cardinality.UNARY_UNARY, bytes, bytes)}

    async def _execute(self, stream: Stream[bytes, bytes]) -> None:
        message = await stream.recv_message()
        try:
            asked = json.loads(message or b"null")
        except ValueError:
            asked = message
        self.asked.append(asked)
        self.metadata.append({name: str(value) for name, value in (stream.metadata or {}).items()})
        self.timeouts.append(stream.deadline.time_remaining() if stream.deadline else None)
        try:
            await self.act(self, stream, asked)
        except asyncio.CancelledError:
            self.is_cancelled.set()
            raise


def says(value: Any) -> Act:
    """This JSON value, or these bytes, as the one message."""

    async def act(server: GrpcServer, stream: Stream[bytes, bytes], asked: Any) -> None:
        await stream.send_message(value if isinstance(value, bytes) else json.dumps(value).encode())

    return act


def echoes(answer: Callable[[Any], Any]) -> Act:
    """What a function makes of the request."""

    async def act(server: GrpcServer, stream: Stream[bytes, bytes], asked: Any) -> None:
        await stream.send_message(json.dumps(answer(asked)).encode())

    return act


def fails(status: Status, message: str | None = None) -> Act:
    async def act(server: GrpcServer, stream: Stream[bytes, bytes], asked: Any) -> None:
        raise GRPCError(status, message)

    return act


async def hangs(server: GrpcServer, stream: Stream[bytes, bytes], asked: Any) -> None:
    await asyncio.sleep(PATIENCE)


async def dies(server: GrpcServer, stream: Stream[bytes, bytes], asked: Any) -> None:
    stream._stream._transport.abort()


@contextmanager
def grpcserver(act: Act, context: ssl.SSLContext | None = None) -> Iterator[GrpcServer]:
    """The server, listening, in a thread with an event loop of its own."""
    service = GrpcServer(act, context)
    with serving(lambda: Server([service], codec=Bytes()), context) as port:
        service.port = port
        yield service


@contextmanager
def serving(make: Callable[[], Server], context: ssl.SSLContext | None = None) -> Iterator[int]:
    """Any grpclib server on a free port, for as long as the block lasts."""
    loop, port, is_up = asyncio.new_event_loop(), [0], threading.Event()

    async def serve() -> None:
        server = make()
        listener = socket.create_server(("127.0.0.1", 0))
        port[0] = listener.getsockname()[1]
        await server.start(sock=listener, ssl=context)
        is_up.set()
        try:
            await asyncio.Event().wait()
        finally:
            server.close()
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(server.wait_closed(), 5)

    task = loop.create_task(serve())

    def run() -> None:
        with contextlib.suppress(asyncio.CancelledError):
            loop.run_until_complete(task)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    try:
        assert is_up.wait(10)
        yield port[0]
    finally:
        loop.call_soon_threadsafe(task.cancel)
        thread.join(10)
        loop.run_until_complete(loop.shutdown_asyncgens())
        loop.close()


@contextmanager
def rawserver(talk: Callable[[socket.socket], None], context: ssl.SSLContext | None = None) -> Iterator[int]:
    """Something on a port that says what it likes to each who connects; the port."""
    listener = socket.create_server(("127.0.0.1", 0))
    listener.settimeout(PATIENCE)
    lines: list[socket.socket] = []

    def one(connection: socket.socket) -> None:
        with contextlib.suppress(OSError):
            talk(context.wrap_socket(connection, server_side=True) if context else connection)

    def run() -> None:
        with contextlib.suppress(OSError):
            while True:
                connection, _ = listener.accept()
                connection.settimeout(PATIENCE)
                lines.append(connection)
                threading.Thread(target=one, args=(connection,), daemon=True).start()

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    try:
        yield listener.getsockname()[1]
    finally:
        with contextlib.suppress(OSError):
            listener.shutdown(socket.SHUT_RDWR)
        listener.close()
        thread.join(10)
        for connection in lines:
            connection.close()
