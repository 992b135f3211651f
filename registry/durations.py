"""Durations as manifests write them: 500ms, 30s, 2m, 1h."""

import re

_FORM = re.compile(r"(?P<number>[0-9]{1,9}(?:\.[0-9]{1,6})?)(?P<unit>ms|s|m|h)", re.ASCII)
_MILLISECONDS = {"ms": 1, "s": 1_000, "m": 60_000, "h": 3_600_000}


def seconds(text: str) -> float:
    """The seconds of a duration; ValueError if it is none."""
    match = _FORM.fullmatch(text)
    if match is None:
        raise ValueError("is not a duration such as 500ms, 30s or 2m")
    return float(match["number"]) * _MILLISECONDS[match["unit"]] / 1000


def normal(text: str) -> str:
    """The one way a duration is kept, so that 2m and 120s are the same content."""
    milliseconds = round(seconds(text) * 1000)
    return f"{milliseconds // 1000}s" if milliseconds % 1000 == 0 else f"{milliseconds}ms"


def short(seconds: int) -> str:
    """Whole seconds in the largest unit that says them exactly: 10m, 90s, 24h."""
    for unit, length in (("h", 3_600), ("m", 60)):
        if seconds and seconds % length == 0:
            return f"{seconds // length}{unit}"
    return f"{seconds}s"
