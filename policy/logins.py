"""Who came in and left: the logins of people are evidence too. Django tells of them by signals only."""

from typing import Any

from django.contrib.auth.signals import user_logged_in, user_logged_out
from django.dispatch import receiver

from audit import trail


@receiver(user_logged_in)
def came_in(sender: Any, user: Any, **_: Any) -> None:
    _record(user, "user.logged_in")


@receiver(user_logged_out)
def left(sender: Any, user: Any, **_: Any) -> None:
    if user is not None:  # an expired session logs out nobody
        _record(user, "user.logged_out")


def _record(user: Any, event: str) -> None:
    name = user.get_username()
    trail.record("user", name, event, actor=f"user:{name}")
