"""Listing: the tools a caller may call, encoded once per state of the registry."""

import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from threading import Lock

from policy import visibility
from policy.caller import Caller
from registry import resolution, revision
from registry.toolspec import ToolSpec

MAX_KEPT = 64  # encoded lists, one for each distinct set of toolkits


@dataclass(frozen=True, slots=True)
class Listing:
    """One encoded list and the tag that stands for it."""

    body: bytes
    etag: str


class Listings:
    """One door's lists; callers with the same toolkits share one, until the revision moves."""

    def __init__(self, encode: Callable[[tuple[ToolSpec, ...]], bytes]) -> None:
        self._encode = encode
        self._kept: dict[frozenset[int], Listing] = {}
        self._kept_at: int | None = None
        self._lock = Lock()

    def of(self, caller: Caller) -> Listing:
        now = revision.current()
        toolkits = visibility.callable_toolkits(caller)
        with self._lock:
            if now != self._kept_at or len(self._kept) >= MAX_KEPT:
                self._kept, self._kept_at = {}, now
            found = self._kept.get(toolkits)
        if found is None:
            body = self._encode(resolution.callable_tools(toolkits))
            found = Listing(body, f'"{hashlib.sha256(body).hexdigest()[:32]}"')
            with self._lock:
                if now == self._kept_at:
                    self._kept[toolkits] = found
        return found
