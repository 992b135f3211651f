"""The agent behind an id, read once per revision: the table of agents is among those that move it."""

from threading import Lock

from policy.models import Agent
from registry import revision

_cache: dict[int, Agent] = {}
_cached_at = -1
_lock = Lock()


def agent(id: int) -> Agent:
    global _cache, _cached_at
    now = revision.current()
    with _lock:
        if now != _cached_at:
            _cache, _cached_at = {}, now
        found = _cache.get(id)
    if found is None:
        found = Agent.objects.get(pk=id)
        with _lock:
            if now == _cached_at:
                _cache[id] = found
    return found
