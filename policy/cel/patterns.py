"""Regular expressions: only those that the engine accepts and that cost little, for it compiles them at every use."""

import re
from bisect import bisect_left
from functools import lru_cache

import jsonschema_rs

from policy.cel.engine import program, run

_SIZES = (1200, *(1 << power for power in range(11, 19)))  # bytes; the largest takes about a millisecond to compile
_ESCAPE = re.compile(r"\\(?:(?P<letters>[wW])|(?P<digits>[dD])|.)", re.DOTALL)
_MATCHES = program("''.matches(pattern)")


@lru_cache(maxsize=1024)
def slope(pattern: str) -> float | None:
    """Nanoseconds that a pattern may need for each byte of a text, at worst; None if it is not accepted.

    Matching is linear in the text, but a text can be made so that every byte visits the whole compiled pattern.
    """
    place = bisect_left(_SIZES, True, key=lambda size: _fits(pattern, size))
    if place == len(_SIZES) or not _is_read(pattern):
        return None
    return 25 if place == 0 else 250 + 0.2 * _SIZES[place]


def _fits(pattern: str, size: int) -> bool:
    weighed = _ESCAPE.sub(_widened, pattern)
    options = jsonschema_rs.RegexOptions(size_limit=size, dfa_size_limit=2 * _SIZES[-1])
    try:
        jsonschema_rs.Draft202012Validator({"pattern": weighed}, pattern_options=options)
    except ValueError:
        return False
    return True


def _widened(escape: re.Match[str]) -> str:
    """The classes of letters and digits as wide as the engine's, which are those of Unicode."""
    return r"\p{L}" if escape["letters"] else r"\p{Nd}" if escape["digits"] else escape.group()


def _is_read(pattern: str) -> bool:
    try:
        run(_MATCHES, {"pattern": pattern})
    except Exception:
        return False
    return True
