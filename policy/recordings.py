"""Recorded calls as a replay wants them; the app that keeps them says how they are read."""

from collections.abc import Callable, Iterator
from datetime import datetime
from typing import NamedTuple
from uuid import UUID


class Recorded(NamedTuple):
    """A call as it was judged; its arguments are the redacted copy, the only one that is kept."""

    id: UUID
    agent_id: int
    tool_id: int
    arguments: str  # JSON
    user_id: str
    at: datetime
    effect: str
    rule: str
    revision: int


class Recordings(NamedTuple):
    """The newest judged calls: how many, and they themselves in batches, newest first."""

    total: int
    batches: Iterator[list[Recorded]]


Source = Callable[[int], Recordings]  # from at most how many

_sources: list[Source] = []


def recorded_by(source: Source) -> Source:
    """Registers where recorded calls come from; once, at start-up."""
    _sources[:] = [source]
    return source


def newest(last: int) -> Recordings:
    """The last calls that were judged, at most so many."""
    return _sources[0](last)
