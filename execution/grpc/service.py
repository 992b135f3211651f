"""ToolService for grpclib: reads one bounded message, lets a thread answer it, and never shows an exception."""

import asyncio
import logging
import threading
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from django.db import InterfaceError, OperationalError, close_old_connections, connections
from grpclib.config import Configuration
from grpclib.const import Cardinality, Handler, Status
from grpclib.exceptions import GRPCError
from grpclib.server import Server, Stream

from execution.grpc import METHOD, codec, crowd, door
from policy.authentication import NotAuthenticated

READ_WITHIN = 10.0  # seconds for the message to arrive once its headers are there
CONFIGURATION = Configuration(http2_connection_window_size=2**20, http2_stream_window_size=2**18)

log = logging.getLogger(__name__)
Execute = Callable[..., bytes]


class ToolService:
    """One method. At most twice as many requests are taken as there are threads; the others are told to come again."""

    def __init__(self, threads: int = 16, execute: Execute = door.execute) -> None:
        self._threads, self._execute_one = threads, execute
        self._pool = ThreadPoolExecutor(threads, thread_name_prefix="grpc-door")
        self._taken = 0
        self.is_closing = False

    def __mapping__(self) -> dict[str, Handler]:
        return {METHOD: Handler(self._execute, Cardinality.UNARY_UNARY, bytes, bytes)}

    async def drained(self, seconds: float) -> None:
        """Takes nothing new, and waits for what is under way."""
        self.is_closing = True
        until = asyncio.get_running_loop().time() + seconds
        while self._taken and asyncio.get_running_loop().time() < until:
            await asyncio.sleep(0.05)

    def close(self) -> None:
        """Ends the threads, each with its connection to the database."""
        together = threading.Barrier(self._threads)

        def leave() -> None:
            together.wait()
            connections.close_all()

        for _ in range(self._threads):
            self._pool.submit(leave)
        self._pool.shutdown()

    async def _execute(self, stream: Stream[bytes, bytes]) -> None:
        message = await _message(stream)  # before a place is taken: who sends slowly takes none from others
        if self.is_closing or self._taken >= 2 * self._threads:
            raise GRPCError(Status.UNAVAILABLE, "Too many requests at this moment; come again")
        left = stream.deadline.time_remaining() if stream.deadline is not None else None
        loop, metadata = asyncio.get_running_loop(), dict(stream.metadata or {})
        answering = loop.run_in_executor(self._pool, self._answer, message, metadata, left)
        self._taken += 1
        answering.add_done_callback(self._answered)
        # A caller that leaves does not undo what it asked for: the call goes on, and its request_id finds the answer.
        await stream.send_message(await asyncio.shield(answering))

    def _answered(self, answering: "asyncio.Future[bytes]") -> None:
        self._taken -= 1
        if not answering.cancelled():
            answering.exception()  # looked at, also when nobody waits for it any more

    def _answer(self, message: bytes, metadata: Mapping[str, Any], left: float | None) -> bytes:
        close_old_connections()
        try:
            return self._execute_one(message, metadata, left=left)
        except NotAuthenticated as error:
            raise GRPCError(Status.UNAUTHENTICATED, str(error)) from None
        except (OperationalError, InterfaceError) as error:
            log.error("the database did not answer: %s", error)
            raise GRPCError(Status.UNAVAILABLE, "The tool server is temporarily unavailable") from None
        except Exception:
            log.exception("a request ended in a bug")
            raise GRPCError(Status.INTERNAL, "The tool server made a mistake; it has been logged") from None


def server(service: ToolService, connections: int = crowd.MOST) -> Server:
    """For the running event loop; grpclib serves JSON and nothing else, to so many at once."""
    return crowd.CrowdedServer([service], codec=codec.JSONCodec(), config=CONFIGURATION, most=connections)


async def _message(stream: Stream[bytes, bytes]) -> bytes:
    """The request, never more of it than a request may be; grpclib itself would wait for four gigabytes."""
    wire = stream._stream
    try:
        async with asyncio.timeout(READ_WITHIN):
            size = codec.length(await wire.recv_data(codec.PREFIX) or b"\0" * codec.PREFIX)
            if size > door.MAX_MESSAGE:
                raise GRPCError(Status.RESOURCE_EXHAUSTED, f"The message is larger than {door.MAX_MESSAGE} bytes")
            return await wire.recv_data(size)
    except codec.BadMessage:
        raise GRPCError(Status.UNIMPLEMENTED, "Messages are not to be compressed") from None
    except AssertionError:
        raise GRPCError(Status.INVALID_ARGUMENT, "The message is cut short") from None
    except TimeoutError:
        raise GRPCError(Status.DEADLINE_EXCEEDED, "The message did not arrive in time") from None
