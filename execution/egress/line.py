"""Line: one connection with one deadline over everything done with it, which a cancellation ends at once."""

import errno
import math
import os
import select
import socket
import ssl
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from ipaddress import IPv6Address, ip_address
from typing import TypeVar

from execution.cancel import Cancel, waking
from execution.egress.addresses import Address
from execution.egress.errors import EgressCancelled, EgressDenied, EgressFailed, EgressTimeout
from execution.egress.resolving import addresses, permit

PIECE = 65_536
_READ, _WRITE = select.POLLIN, select.POLLOUT

T = TypeVar("T")


class Line:
    """A connection to a checked address; the socket never blocks, we wait for it ourselves."""

    def __init__(self, deadline: float, cancel: Cancel | None) -> None:
        self._deadline = deadline
        self._cancel = cancel
        self._woken, self._waker = os.pipe()
        os.set_blocking(self._waker, False)
        self.socket: socket.socket | None = None
        self.is_sent = False  # whether a byte of the request may have left
        self.sent = 0
        self.received = 0

    def close(self) -> None:
        os.close(self._woken)
        os.close(self._waker)
        if self.socket is not None:
            self.socket.close()

    def wake(self) -> None:
        os.write(self._waker, b"!")

    def connect(self, host: str, port: int) -> None:
        """To the first of the host's addresses that answers; none is tried unless all of them are open."""
        found = addresses(host, port, deadline=self._deadline, cancel=self._cancel)
        fault: OSError | None = None
        for index, address in enumerate(found):
            self.check()
            # One that swallows packets must not use up the time of the others.
            share = (self._deadline - time.monotonic()) / (len(found) - index)
            try:
                self._dial(address, port, time.monotonic() + share)
                return
            except OSError as error:
                fault = error
        self.check()
        raise EgressFailed(f"{host} cannot be reached ({_named(fault)})", False) from fault

    def secure(self, context: ssl.SSLContext, host: str) -> None:
        """TLS with whoever proves to be the host."""
        assert self.socket is not None
        try:
            wrapped = context.wrap_socket(
                self.socket,
                server_hostname=host.removesuffix("."),
                do_handshake_on_connect=False,
                suppress_ragged_eofs=False,  # else whoever sits in between could cut an answer short unnoticed
            )
            self.socket = wrapped
            self._patiently(wrapped.do_handshake, _READ)
        except ssl.SSLCertVerificationError as error:
            reason = f"the certificate of {host} is not trusted: {error.verify_message}"
            raise EgressFailed(reason, False, can_retry=False) from error
        except (OSError, ValueError) as error:
            raise EgressFailed(f"no TLS with {host} ({_named(error)})", False) from error

    def send(self, data: bytes) -> None:
        connection, rest = self._connected(), memoryview(data)
        self.check()
        self.is_sent = True
        try:
            while rest:
                count = self._patiently(lambda: connection.send(rest[:PIECE]), _WRITE)  # noqa: B023  called at once
                self.sent += count
                rest = rest[count:]
        except OSError as error:
            raise EgressFailed(f"the connection broke while the request was sent ({_named(error)})", True) from error

    def receive(self) -> bytes:
        """The next bytes, or none if the other side ended properly."""
        connection = self._connected()
        try:
            data = self._patiently(lambda: connection.recv(PIECE), _READ)
        except OSError as error:
            raise EgressFailed(
                f"the connection broke before the answer was complete ({_named(error)})", True
            ) from error
        self.received += len(data)
        return data

    def _connected(self) -> socket.socket:
        assert self.socket is not None
        return self.socket

    def _dial(self, address: Address, port: int, until: float) -> None:
        family = socket.AF_INET6 if isinstance(address, IPv6Address) else socket.AF_INET
        connection = socket.socket(family, socket.SOCK_STREAM)
        try:
            connection.setblocking(False)
            code = connection.connect_ex((str(address), port))
            if code == errno.EINPROGRESS:
                self._wait(connection, _WRITE, until)
                code = connection.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
            if code:
                raise OSError(code, os.strerror(code))
            peer = ip_address(connection.getpeername()[0])
            if peer != address:
                raise EgressDenied("egress_denied: the connection led to another address than the one checked")
            permit(peer)
        except BaseException:
            connection.close()
            raise
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.socket = connection

    def _patiently(self, act: Callable[[], T], events: int) -> T:
        """Does it as soon as the socket is ready for it; looks at the clock however busy the socket is."""
        while True:
            self.check()
            try:
                return act()
            except ssl.SSLWantReadError:
                wanted = _READ
            except ssl.SSLWantWriteError:
                wanted = _WRITE
            except BlockingIOError:
                wanted = events
            self._wait(self._connected(), wanted, self._deadline)

    def _wait(self, connection: socket.socket, events: int, until: float) -> None:
        poll = select.poll()
        poll.register(connection, events)
        poll.register(self._woken, _READ)
        left = max(0.0, min(until, self._deadline) - time.monotonic())
        ready = poll.poll(math.ceil(left * 1000))
        self.check()
        if not ready:
            raise TimeoutError(errno.ETIMEDOUT, "no answer")

    def check(self) -> None:
        """EgressCancelled or EgressTimeout if it is over; for whoever works long on what came."""
        if self._cancel is not None and self._cancel.is_set():
            raise EgressCancelled(self.is_sent)
        if time.monotonic() >= self._deadline:
            raise EgressTimeout(self.is_sent)


@contextmanager
def line(*, deadline: float, cancel: Cancel | None) -> Iterator[Line]:
    """A line that is closed on the way out, and woken when the call is cancelled."""
    opened = Line(deadline, cancel)
    try:
        with waking(cancel, opened.wake):
            yield opened
    finally:
        opened.close()


def connected(host: str, port: int, *, deadline: float, cancel: Cancel | None) -> socket.socket:
    """A connection to a checked address for whatever is not HTTP; blocking, and the caller's to close."""
    with line(deadline=deadline, cancel=cancel) as opened:
        opened.connect(host.removeprefix("[").removesuffix("]").lower(), port)
        connection, opened.socket = opened.socket, None
    assert connection is not None
    connection.setblocking(True)
    return connection


def _named(error: OSError | ValueError | None) -> str:
    """What went wrong in the system's own short name; its sentences may quote what the other side sent."""
    if isinstance(error, ssl.SSLError):
        return error.reason or type(error).__name__
    if isinstance(error, OSError) and error.errno:
        return errno.errorcode.get(error.errno, type(error).__name__)
    return type(error).__name__
