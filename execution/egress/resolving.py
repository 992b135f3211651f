"""From a host to the addresses that may be reached, within the deadline: a name server that stalls holds up nobody."""

import socket
import threading
import time
from contextlib import suppress
from ipaddress import ip_address

from django.conf import settings

from execution.cancel import Cancel, waking
from execution.egress import target
from execution.egress.addresses import Address, closed, closed_name, networks
from execution.egress.errors import EgressCancelled, EgressDenied, EgressFailed, EgressTimeout

MAX_LOOKUPS = 128  # at the same time; those that stall go on until the system's resolver gives up
MAX_ADDRESSES = 32

_places = threading.BoundedSemaphore(MAX_LOOKUPS)


def addresses(host: str, port: int, *, deadline: float, cancel: Cancel | None) -> list[Address]:
    """Every address of the host, all of them open; a single closed one denies them all."""
    literal = target.check(host, port)
    if why := closed_name(host, networks(tuple(settings.PLACET_EGRESS_ALLOW))):
        raise EgressDenied(f"egress_denied: {host} is {why}")
    found = [literal] if literal is not None else _looked_up(host, deadline, cancel)
    for address in found:
        permit(address)
    return found


def permit(address: Address) -> None:
    """EgressDenied if the address is closed."""
    if why := closed(address, networks(tuple(settings.PLACET_EGRESS_ALLOW))):
        raise EgressDenied(f"egress_denied: {address} is {why}")


class _Lookup(threading.Thread):
    """One question to the system's resolver, which knows no deadline of its own."""

    def __init__(self, host: str, place: threading.Semaphore) -> None:
        super().__init__(name="placet-lookup", daemon=True)
        self.host, self._place = host, place
        self.found: list[Address] | None = None
        self.is_over = threading.Event()  # answered, or no longer waited for

    def run(self) -> None:
        try:
            # A name that the resolver's own encoder refuses is as unknown as one without an address.
            with suppress(OSError, UnicodeError, ValueError):
                answers = socket.getaddrinfo(self.host, None, type=socket.SOCK_STREAM)
                self.found = list(dict.fromkeys(ip_address(str(answer[4][0])) for answer in answers))
        finally:
            self._place.release()
            self.is_over.set()


def _looked_up(host: str, deadline: float, cancel: Cancel | None) -> list[Address]:
    if not _places.acquire(blocking=False):
        raise EgressFailed("too many names are being looked up", False)
    lookup = _Lookup(host, _places)
    try:
        lookup.start()
    except RuntimeError:  # no more threads
        _places.release()
        raise EgressFailed("too many names are being looked up", False) from None
    with waking(cancel, lookup.is_over.set):
        is_over = lookup.is_over.wait(max(0.0, deadline - time.monotonic()))
    if cancel is not None and cancel.is_set():
        raise EgressCancelled(False)
    if not is_over:
        raise EgressTimeout(False)
    if not lookup.found:
        raise EgressFailed(f"the name {host} has no address", False)
    if len(lookup.found) > MAX_ADDRESSES:
        raise EgressDenied(f"the name {host} has too many addresses")
    return lookup.found
