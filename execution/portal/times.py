"""Times on pages: UTC from the server, shown in the viewer's own zone by a script, with UTC left on hover."""

from datetime import UTC, datetime

from django.utils.html import format_html
from django.utils.safestring import SafeString

STYLES = ("full", "ago", "day", "hour")


def iso(at: datetime) -> str:
    """The moment as scripts read it."""
    return at.astimezone(UTC).isoformat(timespec="seconds").replace("+00:00", "Z")


def moment(at: datetime | None, style: str = "full") -> SafeString:
    """A `<time>`; without a script it reads as UTC and says so."""
    if at is None:
        return SafeString("–")
    if style not in STYLES:
        raise ValueError(f"a time is shown as {', '.join(STYLES)}, not {style!r}")
    told = f"{at.astimezone(UTC):%Y-%m-%d %H:%M:%S} UTC"
    return format_html(
        '<time datetime="{0}" title="{1}" data-moment="{0}" data-style="{2}">{1}</time>', iso(at), told, style
    )
