"""What a person may give an agent: nothing they do not have themselves."""

from collections.abc import Iterable

from django.contrib.auth.models import User

from registry import access
from registry.models import Toolkit


def ungrantable(user: User, *, verb: str, toolkits: Iterable[str]) -> list[str]:
    """The names among these that this person cannot give; one they cannot see reads like one that is not there."""
    if user.is_superuser:
        return []
    named = {name.lower(): name for name in toolkits}
    visible = {toolkit.name.lower(): toolkit for toolkit in access.visible_toolkits(user)}
    return [name for key, name in named.items() if key not in visible or not _has(user, verb, visible[key])]


def _has(user: User, verb: str, toolkit: Toolkit) -> bool:
    is_owner = toolkit.owner_id is not None and toolkit.owner_id == user.pk
    return is_owner or access.may(user, verb, toolkit) or access.may(user, "publish", toolkit)
