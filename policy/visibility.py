"""The toolkits an agent may see and call, cached until the registry's revision moves."""

from threading import Lock

from django.contrib.auth import get_user_model
from django.db.models import QuerySet
from guardian.shortcuts import get_objects_for_user

from policy.caller import Caller
from registry import revision
from registry.models import Toolkit

_cache: dict[tuple[int, str], frozenset[int]] = {}
_cached_at = -1
_lock = Lock()


def callable_toolkits(caller: Caller) -> frozenset[int]:
    return _toolkits(caller.user_id, "call_toolkit")


def visible_toolkits(caller: Caller) -> frozenset[int]:
    """What an agent may call it may see."""
    return _toolkits(caller.user_id, "view_toolkit") | callable_toolkits(caller)


def _toolkits(user_id: int, permission: str) -> frozenset[int]:
    global _cache, _cached_at
    now = revision.current()
    with _lock:
        if now != _cached_at:
            _cache, _cached_at = {}, now
        found = _cache.get((user_id, permission))
    if found is None:
        user = get_user_model().objects.get(pk=user_id)
        # Guardian counts a permission on all toolkits only beside the superuser's rights, which agents never get.
        permitted: QuerySet[Toolkit] = get_objects_for_user(
            user, f"registry.{permission}", with_superuser=not user.is_superuser
        )
        found = frozenset(permitted.values_list("pk", flat=True))
        with _lock:
            if now == _cached_at:
                _cache[user_id, permission] = found
    return found
