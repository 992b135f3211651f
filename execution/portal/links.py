"""Addresses of the lists behind the numbers, each narrowed to what the number counted."""

from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from urllib.parse import urlencode

from django.urls import reverse


def calls_url(
    *, states: Iterable[str] = (), since: datetime | None = None, until: datetime | None = None, search: str = ""
) -> str:
    """The list of calls in these states, made in this span of time, of what was searched for."""
    asked = [("state__exact", state) for state in states]
    if search:
        asked.append(("q", search))
    if since is not None:
        asked += _side("from", since)
    if until is not None:
        asked += _side("to", until - timedelta(microseconds=1))  # the list includes its end
    address = reverse("admin:execution_call_changelist")
    return f"{address}?{urlencode(asked)}" if asked else address


def _side(name: str, at: datetime) -> list[tuple[str, str]]:
    at = at.astimezone(UTC)
    return [
        (f"created_at_{name}_0", f"{at:%Y-%m-%d}"),
        (f"created_at_{name}_1", f"{at:%H:%M:%S.%f}" if at.microsecond else f"{at:%H:%M:%S}"),
    ]
