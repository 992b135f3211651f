"""Times on pages: UTC from the server, shown in the viewer's own zone by a script, with UTC left on hover."""

import re
from datetime import UTC, datetime

from django.utils.dateparse import parse_datetime
from django.utils.html import conditional_escape, format_html
from django.utils.safestring import SafeString, mark_safe

STYLES = ("full", "ago", "day", "hour", "exact", "clock")
_EXACT = ("exact", "clock")  # to the millisecond, the second one without its day
_TOLD = re.compile(r"\b(\d{4}-\d\d-\d\d \d\d:\d\d(?::\d\d)?) UTC\b")


def iso(at: datetime, timespec: str = "seconds") -> str:
    """The moment as scripts read it."""
    return at.astimezone(UTC).isoformat(timespec=timespec).replace("+00:00", "Z")


def moment(at: datetime | None, style: str = "full") -> SafeString:
    """A `<time>`; without a script it reads as UTC and says so."""
    if at is None:
        return SafeString("–")
    if style not in STYLES:
        raise ValueError(f"a time is shown as {', '.join(STYLES)}, not {style!r}")
    is_exact = style in _EXACT
    told = f"{at.astimezone(UTC):{'%Y-%m-%d %H:%M:%S.%f' if is_exact else '%Y-%m-%d %H:%M:%S'}} UTC"
    machine = iso(at, "milliseconds" if is_exact else "seconds")
    return format_html(
        '<time datetime="{0}" title="{1}" data-moment="{0}" data-style="{2}">{1}</time>', machine, told, style
    )


def timed(text: str) -> SafeString:
    """A sentence in which each moment that says it is UTC is a `<time>`; the rest is escaped."""
    return mark_safe(_TOLD.sub(_as_time, conditional_escape(text)))


def _as_time(match: re.Match[str]) -> str:
    try:
        at = parse_datetime(match[1])
    except ValueError:  # a day that no month has
        at = None
    return moment(at.replace(tzinfo=UTC)) if at else match[0]
