"""Suggestions: the names that a caller may have meant, among those it can see."""

from collections.abc import Iterable

MAX_DISTANCE = 3
MAX_NAMES = 3
MAX_COMPARED = 2_000  # a name that nobody knows must not cost more than a call
_SEPARATORS = str.maketrans(".-/ ", "____")


def nearest(wanted: str, names: Iterable[str]) -> list[str]:
    """At most three names within three changes of a letter, nearest first; case and separators do not count."""
    meant = _plain(wanted)
    found: list[tuple[int, str]] = []
    compared = 0
    for name in names:
        candidate = _plain(name)
        if abs(len(candidate) - len(meant)) > MAX_DISTANCE:
            continue
        compared += 1
        if compared > MAX_COMPARED:
            break
        distance = _distance(meant, candidate)
        if distance <= MAX_DISTANCE:
            found.append((distance, name))
    least = 0 if any(distance == 0 for distance, _ in found) else MAX_DISTANCE  # the very name needs no others
    return [name for distance, name in sorted(found)[:MAX_NAMES] if distance <= least]


def _plain(name: str) -> str:
    return name.lower().translate(_SEPARATORS)


def _distance(a: str, b: str) -> int:
    """Levenshtein's distance, or anything above the limit once it is sure to be above."""
    above = MAX_DISTANCE + 1
    row = [*range(above), above] + [above] * max(0, len(b) - above)
    row = row[: len(b) + 1]
    for i, letter in enumerate(a, 1):
        first, last = max(1, i - MAX_DISTANCE), min(len(b), i + MAX_DISTANCE)
        new = [above] * (len(b) + 1)
        if i <= MAX_DISTANCE:
            new[0] = i
        for j in range(first, last + 1):
            new[j] = min(row[j - 1] + (letter != b[j - 1]), row[j] + 1, new[j - 1] + 1)
        row = new
        if min(row[max(0, first - 1) : last + 1]) > MAX_DISTANCE:
            return above
    return row[len(b)]
