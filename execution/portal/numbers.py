"""Numbers as people read them: short, with their unit, and never more exact than they are."""

_SHORT = ((1_000_000_000, "G"), (1_000_000, "M"), (10_000, "k"))
_LONG_MS = ((86_400_000, "d"), (3_600_000, "h"), (60_000, "min"), (1_000, "s"))


def short(number: float) -> str:
    """12,345 becomes 12.3k; below ten thousand every digit is shown."""
    for size, unit in _SHORT:
        if abs(number) >= size:
            unit_size = 1_000 if unit == "k" else size
            return f"{_three(number / unit_size)}{unit}"
    return f"{number:,.0f}"


def took(milliseconds: float | None) -> str:
    """A duration in the unit that suits it; a dash where there is none."""
    if milliseconds is None:
        return "–"
    for size, unit in _LONG_MS:
        if milliseconds >= size:
            return f"{_three(milliseconds / size)} {unit}"
    return f"{_three(milliseconds)} ms"


def share(part: float, whole: float) -> str:
    """A part in percent; what is less than a tenth is said so, and all is only said of all."""
    if not whole:
        return "–"
    percent = 100 * part / whole
    if 0 < percent < 0.1:
        return "< 0.1 %"
    if 99.9 < percent < 100:
        return "> 99.9 %"
    return f"{percent:.1f} %" if 0 < percent < 100 else f"{percent:.0f} %"


def _three(number: float) -> str:
    """Three digits at most before it is rounded away, and no empty decimals."""
    digits = 0 if abs(number) >= 100 else 1 if abs(number) >= 10 else 2
    text = f"{number:.{digits}f}"
    return text.rstrip("0").rstrip(".") if "." in text else text
