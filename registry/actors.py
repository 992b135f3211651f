"""Who did it, as the trail names them."""

from typing import Any

from django.contrib.auth.models import AbstractBaseUser, User
from django.core.exceptions import PermissionDenied

AGENT = "agent:"  # how the user that holds an agent's permissions is called; no person's name can hold a colon


def actor(user: AbstractBaseUser) -> str:
    """`agent:NAME` for the user behind an agent, `user:NAME` for a person."""
    name = user.get_username()
    return name if name.startswith(AGENT) else f"user:{name}"


def is_person(user: AbstractBaseUser) -> bool:
    """Whether a human being stands behind this user."""
    return not user.get_username().startswith(AGENT)


def in_words(actor: str) -> str:
    """An actor of the trail as people say it."""
    kind, _, name = actor.partition(":")
    if kind == "agent" and name:
        return f"Agent {name}"
    if kind == "user" and name:
        return name
    return _PARTS.get(actor, actor)


_PARTS = {"system": "Placet", "worker": "A worker", "shell": "Someone at the shell"}


def who(request: Any) -> User:
    """The user behind a request; nobody is refused."""
    user = request.user
    if not isinstance(user, User):
        raise PermissionDenied("Log in first.")
    return user
