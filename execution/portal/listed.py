"""The filters of a list's address as those of a pack, and either in words."""

from collections.abc import Mapping
from datetime import UTC, datetime, time, timedelta

from django.http import QueryDict
from django.utils.dateparse import parse_date, parse_time

from execution.scope import NAMES, OF_CALL

_OF_ADMIN = {"q": "search", "actor": "actor_prefix"}  # the admin's list of events searches and narrows by these
_PLAIN = ("event", "subject_kind", "outcome", "subject_id", "trace_id")
_WORDS = {
    "subject_kind": "about a",
    "subject_id": "about",
    "event": "event is",
    "actor": "actor is",
    "actor_prefix": "actor begins with",
    "outcome": "outcome is",
    "trace_id": "trace id is",
    "since": "since",
    "until": "before",
    "search": "holds",
    "tool_id": "tool is",
    "id": "id is",
    "call_id": "call id is",
}


def filters_of_list(asked: QueryDict) -> dict[str, str]:
    """From the admin's list of events, or from our own search, which marks its address with `scope`."""
    if "scope" in asked:
        return {name: str(value) for name, value in asked.items() if name != "scope" and value}
    found = {name: str(asked[name]) for name in _PLAIN if asked.get(name)}
    found |= {target: str(asked[name]) for name, target in _OF_ADMIN.items() if asked.get(name)}
    if start := _moment(asked, "from", time.min):
        found["since"] = start.isoformat()
    if end := _moment(asked, "to", time.max):
        found["until"] = (end + timedelta(microseconds=1)).isoformat()
    return found


def words_of(filters: Mapping[str, str]) -> tuple[str, ...]:
    """Each filter as a person says it; a name nobody knows is shown as it is, for it is about to be refused."""
    told = []
    for name, value in sorted(filters.items()):
        plain = name.removeprefix(OF_CALL)
        if name == f"{OF_CALL}search" and not value:
            told.append("about calls")
            continue
        subject = "the call's " if name.startswith(OF_CALL) and name in NAMES else ""
        told.append(f"{subject}{_WORDS.get(plain, f'{plain} is')} {value.replace(',', ' or ')}")
    return tuple(told) or ("everything that you may see",)


def _moment(asked: QueryDict, side: str, otherwise: time) -> datetime | None:
    day, hour = asked.get(f"at_{side}_0", ""), asked.get(f"at_{side}_1", "")
    try:
        date, clock = parse_date(day), parse_time(hour) if hour else otherwise
    except ValueError:
        return None
    return datetime.combine(date, clock.replace(tzinfo=None), tzinfo=UTC) if date and clock else None
