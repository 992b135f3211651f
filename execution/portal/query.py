"""Query: what stands in the search box, read into words and readable filters, and written back."""

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta

from django.utils.dateparse import parse_date, parse_datetime

from execution.models import State
from execution.tones import DOORS

MAX_QUERY = 500
MAX_WORDS = 8

# Each filter: how it is told, and which searches know it.
FILTERS = {
    "agent": "agent is",
    "tool": "tool is",
    "state": "state is",
    "door": "door is",
    "trace": "trace id is",
    "id": "id is",
    "since": "since",
    "until": "until",
    "event": "event is",
    "actor": "actor begins with",
    "kind": "about a",
    "subject": "about",
    "outcome": "outcome is",
}
ONLY_EVENTS = frozenset({"event", "actor", "kind", "subject", "outcome"})
_UNITS = {"m": "minutes", "h": "hours", "d": "days", "w": "weeks"}
_PART = re.compile(r'(?:([a-z]+):)?(?:"([^"]*)"?|(\S+))')
_AGO = re.compile(r"(\d{1,4})([mhdw])")


class QueryError(Exception):
    """What cannot be searched for, and why; a sentence."""


@dataclass(frozen=True, slots=True)
class Term:
    """One filter, or one word where the name is empty."""

    name: str
    value: str

    @property
    def text(self) -> str:
        """As it stands in the box."""
        is_plain = self.value and not re.search(r'[\s"]', self.value) and (self.name or ":" not in self.value)
        value = self.value if is_plain else f'"{self.value.replace(chr(34), " ")}"'
        return f"{self.name}:{value}" if self.name else value

    @property
    def told(self) -> str:
        """As a person says it."""
        if not self.name:
            return f"holds “{self.value}”"
        value = self.value
        if self.name in ("since", "until") and (ago := _AGO.fullmatch(value)):
            count, unit = int(ago[1]), _UNITS[ago[2]]
            return f"{FILTERS[self.name]} {count} {unit if count != 1 else unit[:-1]} ago"
        if self.name in ("since", "until"):
            return f"{FILTERS[self.name]} {_in_utc(value)} UTC"
        if self.name == "state":
            value = str(dict(State.choices)[value]).lower()
        elif self.name == "door":
            value = DOORS[value]
        return f"{FILTERS[self.name]} {value}"


@dataclass(frozen=True, slots=True)
class Query:
    """Terms in the order they were given."""

    terms: tuple[Term, ...] = ()

    @classmethod
    def parse(cls, text: str) -> "Query":
        """Reads a box; raises QueryError for a filter that does not exist or a value that cannot be."""
        if len(text) > MAX_QUERY:
            raise QueryError(f"A search has at most {MAX_QUERY} characters.")
        text = text.replace("\0", " ")
        terms = tuple(_term(name, quoted if quoted is not None else plain) for name, quoted, plain in _parts(text))
        if sum(1 for term in terms if not term.name) > MAX_WORDS:
            raise QueryError(f"A search has at most {MAX_WORDS} words; filters do not count.")
        for name in FILTERS:
            if name != "state" and sum(1 for term in terms if term.name == name) > 1:
                raise QueryError(f"Give {name} once; only state may be given several times.")
        return cls(terms)

    def __str__(self) -> str:
        return " ".join(term.text for term in self.terms)

    @property
    def words(self) -> tuple[str, ...]:
        return tuple(term.value for term in self.terms if not term.name and term.value)

    def values(self, name: str) -> tuple[str, ...]:
        return tuple(term.value for term in self.terms if term.name == name)

    def without(self, index: int) -> "Query":
        return Query(self.terms[:index] + self.terms[index + 1 :])

    def having(self, name: str, *values: str) -> "Query":
        """The same query with this filter set to these values and to no other."""
        kept = tuple(term for term in self.terms if term.name != name)
        return replace(self, terms=kept + tuple(_term(name, value) for value in values if value))


def moment_of(value: str, now: datetime, *, is_end: bool = False) -> datetime | None:
    """2h, 7d (ago), 2026-11-01 (to its end, if it is an end), 2026-11-01T12:30, in UTC; None for anything else."""
    if ago := _AGO.fullmatch(value):
        return now - timedelta(**{_UNITS[ago[2]]: int(ago[1])})
    try:
        if day := parse_date(value):
            return datetime(day.year, day.month, day.day, tzinfo=UTC) + timedelta(days=int(is_end))
        at = parse_datetime(value)
        return at and (at.astimezone(UTC) if at.tzinfo else at.replace(tzinfo=UTC))
    except (ValueError, OverflowError):
        return None


def _in_utc(value: str) -> str:
    """A day as it was written; any other moment in UTC, which pages show in the viewer's zone."""
    at = moment_of(value, datetime.now(UTC))
    if at is None or parse_date(value):
        return value
    return f"{at:%Y-%m-%d %H:%M:%S}" if at.second else f"{at:%Y-%m-%d %H:%M}"


def _parts(text: str) -> Iterator[tuple[str, str | None, str]]:
    for match in _PART.finditer(text):
        name, quoted, plain = match[1] or "", match[2], match[3] or ""
        if plain.endswith(":") and plain[:-1] in FILTERS and not name:
            name, plain = plain[:-1], ""
        # An address such as http://… is a word, not a filter.
        yield ("", None, match[0]) if name and plain.startswith("//") else (name, quoted, plain)


def _term(name: str, value: str) -> Term:
    if name and name not in FILTERS:
        names = ", ".join(FILTERS)
        raise QueryError(f"There is no filter “{name}”; there are {names}. Put a text with a colon in quotes.")
    if name and not value:
        raise QueryError(f"Say which {name}: {name}:value")
    if name == "state" and value not in State.values:
        raise QueryError(f"There is no state “{value}”; there are {', '.join(State.values)}.")
    if name == "door" and value not in DOORS:
        raise QueryError(f"There is no door “{value}”; there are {', '.join(DOORS)}.")
    if name in ("since", "until") and moment_of(value, datetime.now(UTC)) is None:
        raise QueryError(f"“{value}” is no time; write {name}:2h, {name}:7d, {name}:2026-11-01 or 2026-11-01T12:30.")
    return Term(name, value)
