"""The key set in force, from a file or from the authorization server; whoever guards the ways out fetches it."""

import logging
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Protocol

from django.conf import settings

from policy import keyset
from policy.keyset import BadKeySet, KeySet

logger = logging.getLogger(__name__)

TIMEOUT = 5.0  # seconds for one fetch, and for everyone who waits for it
PAUSE = 60.0  # seconds between two fetches, whatever comes of the first
FRESH = 300.0  # seconds after which a set is fetched again although nobody missed a key
MAX_WAITING = 8  # requests that wait for one fetch; web threads are few, and strangers can name keys that do not exist

Fetch = Callable[[str, float], bytes]  # address, seconds; raises Unfetched

_ways: list[Fetch] = []
_lock = threading.Lock()
_source: "tuple[str, Source] | None" = None


class Unfetched(Exception):
    """The set did not arrive; the message says why, without the address."""


class Source(Protocol):
    """Where a set comes from; None: there never was a good one."""

    def current(self) -> KeySet | None:
        """The last good set, at once."""

    def renewed(self) -> KeySet | None:
        """The newest set that can be had within a few seconds, for whoever misses a key in the current one."""


def fetched_by(way: Fetch) -> Fetch:
    """Registers how a set is fetched from the web; once, at start-up."""
    _ways[:] = [way]
    return way


def current() -> KeySet | None:
    """The set in force; the same object for as long as nothing changed."""
    return source().current() if settings.PLACET_JWKS else None


def source() -> Source:
    """Of the set that settings name."""
    global _source
    place = settings.PLACET_JWKS
    with _lock:
        if _source is None or _source[0] != place:
            _source = place, (FetchedSet(place) if is_address(place) else FileSet(Path(place)))
        return _source[1]


def is_address(place: str) -> bool:
    return "://" in place


class FileSet:
    """A set that lies in a file, read again whenever the file changes."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._lock = threading.Lock()
        self._seen: object = None
        self._keys: KeySet | None = None

    def current(self) -> KeySet | None:
        seen = self._state()
        with self._lock:
            if seen != self._seen:
                self._seen = seen  # before it is read: what is written meanwhile is a change again
                try:
                    self._keys = keyset.read(self._path.read_bytes())
                except (OSError, BadKeySet) as error:
                    _complain(error, self._keys)
            return self._keys

    renewed = current

    def _state(self) -> object:
        try:
            found = self._path.stat()
        except OSError as error:
            return error.errno
        return found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns


class FetchedSet:
    """A set from the web: fetched by one thread at a time, seldom, and never by one that answers a request."""

    def __init__(self, address: str) -> None:
        self._address = address
        self._lock = threading.Lock()
        self._places = threading.BoundedSemaphore(MAX_WAITING)
        self._keys: KeySet | None = None
        self._begun_at = float("-inf")
        self._flight: threading.Event | None = None

    def current(self) -> KeySet | None:
        if time.monotonic() - self._begun_at >= FRESH:
            self._begin()
        return self._keys

    def renewed(self) -> KeySet | None:
        self._begin()
        flight = self._flight
        if flight is not None and self._places.acquire(blocking=False):
            try:
                flight.wait(max(0.0, self._begun_at + TIMEOUT - time.monotonic()))
            finally:
                self._places.release()
        return self._keys

    def _begin(self) -> None:
        """Unless one is on its way, or the last one began too short a time ago."""
        with self._lock:
            if self._flight is not None or time.monotonic() - self._begun_at < PAUSE:
                return
            self._begun_at, self._flight = time.monotonic(), threading.Event()
            try:
                threading.Thread(target=self._fetch, args=(self._flight,), name="placet-keys", daemon=True).start()
            except RuntimeError as error:  # no more threads
                self._flight = None
                _complain(error, self._keys)

    def _fetch(self, flight: threading.Event) -> None:
        try:
            text = _ways[0](self._address, TIMEOUT)
            if self._keys is None or text != self._keys.text:
                self._keys = keyset.read(text)
        except (Unfetched, BadKeySet) as error:
            _complain(error, self._keys)
        finally:
            self._flight = None
            flight.set()


def _complain(error: Exception, kept: KeySet | None) -> None:
    why = (error.strerror if isinstance(error, OSError) else None) or error
    instead = "the last good one stays in force" if kept is not None else "no token of an issuer can be checked"
    logger.error("the key set of PLACET_JWKS cannot be used: %s; %s", why, instead)
