"""Listing: the tools a caller may call, encoded once per state of the registry."""

import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from threading import Lock

from policy import engine, visibility
from policy.caller import Caller
from registry import resolution, revision
from registry.toolspec import ToolSpec

MAX_KEPT = 64  # encoded lists, one for each distinct set of tools
MAX_READERS = 10_000  # callers whose list is known


@dataclass(frozen=True, slots=True)
class Listing:
    """One encoded list and the tag that stands for it."""

    body: bytes
    etag: str


class Listings:
    """One door's lists; callers with the same tools share one, until the revision moves."""

    def __init__(self, encode: Callable[[tuple[ToolSpec, ...]], bytes]) -> None:
        self._encode = encode
        self._kept: dict[tuple[ToolSpec, ...], Listing] = {}
        self._read_by: dict[int, Listing] = {}
        self._kept_at: int | None = None
        self._lock = Lock()

    def of(self, caller: Caller) -> Listing:
        with revision.pinned():
            now = revision.current()
            with self._lock:
                if now != self._kept_at or len(self._kept) >= MAX_KEPT or len(self._read_by) >= MAX_READERS:
                    self._kept, self._read_by, self._kept_at = {}, {}, now
                found = self._read_by.get(caller.agent_id)
            if found is None:
                found = self._of(_tools(caller))
                with self._lock:
                    if now == self._kept_at:
                        self._read_by[caller.agent_id] = found
            return found

    def _of(self, tools: tuple[ToolSpec, ...]) -> Listing:
        now = revision.current()
        with self._lock:
            found = self._kept.get(tools)
        if found is None:
            body = self._encode(tools)
            found = Listing(body, f'"{hashlib.sha256(body).hexdigest()[:32]}"')
            with self._lock:
                if now == self._kept_at:
                    self._kept[tools] = found
        return found


def _tools(caller: Caller) -> tuple[ToolSpec, ...]:
    """What the caller may call, without the tools that a rule forbids it whatever it says."""
    tools = resolution.callable_tools(visibility.callable_toolkits(caller))
    return tuple(tool for tool in tools if not engine.is_barred(caller, tool))
