"""The toolkits an agent may see, call and serve, and its groups, cached until the registry's revision moves."""

from threading import Lock

from django.contrib.auth import get_user_model
from django.contrib.auth.models import Group
from django.db.models import QuerySet
from guardian.shortcuts import get_objects_for_user

from policy.caller import Caller
from registry import revision
from registry.models import Toolkit

_cache: dict[tuple[int, str], frozenset[int]] = {}
_groups: dict[int, frozenset[str]] = {}
_cached_at = -1
_lock = Lock()


def callable_toolkits(caller: Caller) -> frozenset[int]:
    return _toolkits(caller.user_id, "call_toolkit")


def served_toolkits(caller: Caller) -> frozenset[int]:
    """Those whose calls the agent may take and answer, as an outside worker."""
    return _toolkits(caller.user_id, "serve_toolkit")


def visible_toolkits(caller: Caller) -> frozenset[int]:
    """What an agent may call it may see."""
    return _toolkits(caller.user_id, "view_toolkit") | callable_toolkits(caller)


def groups_of(caller: Caller) -> frozenset[str]:
    """The names of the groups that the agent's user is in."""
    now = revision.current()
    with _lock:
        _forget_what_is_older_than(now)
        found = _groups.get(caller.user_id)
    if found is None:
        found = frozenset(Group.objects.filter(user=caller.user_id).values_list("name", flat=True))
        with _lock:
            if now == _cached_at:
                _groups[caller.user_id] = found
    return found


def _forget_what_is_older_than(now: int) -> None:
    global _cache, _groups, _cached_at
    if now != _cached_at:
        _cache, _groups, _cached_at = {}, {}, now


def _toolkits(user_id: int, permission: str) -> frozenset[int]:
    now = revision.current()
    with _lock:
        _forget_what_is_older_than(now)
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
