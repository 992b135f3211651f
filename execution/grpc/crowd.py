"""How many may hold the port at once: a newcomer takes the place of whoever has asked nothing for longest."""

import asyncio
from asyncio import BaseTransport, TimerHandle
from typing import Any

from grpclib.protocol import H2Protocol
from grpclib.server import Handler, Server
from h2.errors import ErrorCodes

MOST = 200  # connections; each may have a megabyte under way
IDLE = 300.0  # seconds after which one that asks nothing is closed
LINGER = 0.2  # seconds in which one that was sent away may still hear it


class CrowdedServer(Server):
    """grpclib's server, which by itself takes every connection and keeps it for ever."""

    def __init__(self, *args: Any, most: int = MOST, idle: float = IDLE, **more: Any) -> None:
        super().__init__(*args, **more)
        self.most, self.idle = most, idle
        self.present: dict[_Visitor, None] = {}  # whoever asked last stands last

    def _protocol_factory(self) -> H2Protocol:
        plain = super()._protocol_factory()
        return _Visitor(self, plain)

    def arrive(self, visitor: "_Visitor") -> None:
        """Makes room, or sends the newcomer away if everybody here waits for an answer."""
        if len(self.present) >= self.most:
            idlest = next((each for each in self.present if not each.is_busy), None)
            (idlest or visitor).send_away()
            if idlest is None:
                return
        self.present[visitor] = None

    def asked(self, visitor: "_Visitor") -> None:
        if visitor in self.present:
            del self.present[visitor]
            self.present[visitor] = None

    def leave(self, visitor: "_Visitor") -> None:
        self.present.pop(visitor, None)


class _Visitor(H2Protocol):
    """One connection: busy while a request of it is open; pings do not count as asking."""

    def __init__(self, crowd: CrowdedServer, plain: H2Protocol) -> None:
        assert isinstance(plain.handler, Handler)
        super().__init__(plain.handler, plain.config, plain.h2_config)
        self._crowd = crowd
        self._loop = asyncio.get_running_loop()
        self._timer: TimerHandle | None = None
        self._since = self._loop.time()

    @property
    def is_busy(self) -> bool:
        return bool(self.processor.streams)

    def connection_made(self, transport: BaseTransport) -> None:
        super().connection_made(transport)
        self._timer = self._loop.call_later(self._crowd.idle, self._look)
        self._crowd.arrive(self)

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        if self.is_busy:
            self._since = self._loop.time()
            self._crowd.asked(self)

    def connection_lost(self, exc: BaseException | None) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._crowd.leave(self)
        super().connection_lost(exc)

    def send_away(self) -> None:
        """With a word that clients understand: they come again by themselves when they have something to ask."""
        self._crowd.leave(self)
        if not self.connection.is_closing():
            self.connection._connection.close_connection(ErrorCodes.ENHANCE_YOUR_CALM)
            self.connection.flush()
        # Closed at once with something unread, the connection would be torn down and the word lost.
        self._loop.call_later(LINGER, self.processor.close, "Too many connections, or one that asked nothing")

    def _look(self) -> None:
        now = self._loop.time()
        answered = self.connection.last_data_sent or 0.0  # by the same clock
        self._since = now if self.is_busy else max(self._since, answered)
        left = self._since + self._crowd.idle - now
        if left <= 0:
            self.send_away()
        else:
            self._timer = self._loop.call_later(left, self._look)
