"""A name server and a network of our own: what is asked and where a connection would go, without a packet."""

from __future__ import annotations

import socket
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import pytest

from execution.cancel import Cancel
from execution.egress import Response, request


@dataclass
class Network:
    """Answers for names, and keeps every address that someone tried to connect to."""

    names: dict[str, list[str]] = field(default_factory=dict)
    asked: list[str] = field(default_factory=list)
    dialled: list[tuple[str, int]] = field(default_factory=list)
    leads_to: tuple[str, int] | None = None  # where every connection really ends; None: it is refused
    stall: Callable[[], Any] | None = None  # what the name server does before it answers

    def getaddrinfo(self, host: str, *args: Any, **kwargs: Any) -> list[Any]:
        self.asked.append(host)
        if self.stall is not None:
            self.stall()
        if host not in self.names:
            raise socket.gaierror(socket.EAI_NONAME, "unknown")
        found = []
        for text in self.names[host]:
            family = socket.AF_INET6 if ":" in text else socket.AF_INET
            found.append((family, socket.SOCK_STREAM, 6, "", (text, 0)))
        return found


@pytest.fixture
def network(monkeypatch: pytest.MonkeyPatch) -> Network:
    """The network of one test."""
    made = Network()
    really = socket.socket.connect_ex

    def connect_ex(connection: socket.socket, address: Any) -> int:
        made.dialled.append((address[0], address[1]))
        return 111 if made.leads_to is None else really(connection, made.leads_to)

    monkeypatch.setattr(socket, "getaddrinfo", made.getaddrinfo)
    monkeypatch.setattr(socket.socket, "connect_ex", connect_ex)
    return made


def ask(
    url: str,
    *,
    method: str = "POST",
    body: bytes = b"{}",
    headers: dict[str, str] | None = None,
    seconds: float = 5.0,
    cancel: Cancel | None = None,
    max_bytes: int = 10_000,
) -> Response:
    """One request, with a time of its own."""
    until = time.monotonic() + seconds
    return request(method, url, headers=headers or {}, body=body, deadline=until, cancel=cancel, max_bytes=max_bytes)
