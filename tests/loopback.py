"""Tests reach this machine and nothing else."""

from __future__ import annotations

import ipaddress
import socket
from typing import Any

import pytest

_connect = socket.socket.connect
_connect_ex = socket.socket.connect_ex
_getaddrinfo = socket.getaddrinfo


def guard() -> None:
    """From now on, connecting elsewhere or asking a name server fails the test that does it."""

    def connect(self: socket.socket, address: Any) -> None:
        _check(self, address)
        _connect(self, address)

    def connect_ex(self: socket.socket, address: Any) -> int:
        _check(self, address)
        return _connect_ex(self, address)

    def getaddrinfo(host: Any, *args: Any, **kwargs: Any) -> Any:
        if not is_local(host):
            pytest.fail(f"a test asked a name server for {host!r}")
        return _getaddrinfo(host, *args, **kwargs)

    setattr(socket.socket, "connect", connect)  # noqa: B010  mypy forbids assigning to a method
    setattr(socket.socket, "connect_ex", connect_ex)  # noqa: B010
    setattr(socket, "getaddrinfo", getaddrinfo)  # noqa: B010


def is_local(host: str | bytes | None) -> bool:
    """Whether a host is this machine, or an address that needs no name server and is checked when connecting."""
    name = host.decode() if isinstance(host, bytes) else host
    if name in (None, "", "localhost", socket.gethostname()):
        return True
    try:
        ipaddress.ip_address(str(name).partition("%")[0])
    except ValueError:
        return False
    return True


def _check(connection: socket.socket, address: Any) -> None:
    if connection.family in (socket.AF_INET, socket.AF_INET6):
        host = str(address[0]).partition("%")[0]
        if not (host == "localhost" or ipaddress.ip_address(host).is_loopback):
            pytest.fail(f"a test connected to {host}, which is not this machine")
