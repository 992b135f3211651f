"""Regular expressions: only those that the engine accepts and that cost little, for it compiles them at every use."""

import re
from functools import lru_cache

import jsonschema_rs

from policy.cel.engine import program, run

_MAX_COMPILED = 1 << 18  # bytes; about half a millisecond to compile
_WIDE_CLASS = re.compile(r"\\(?:(?P<other>[^wWdDsSbB])|.)", re.DOTALL)
_MATCHES = program("''.matches(pattern)")


@lru_cache(maxsize=1024)
def is_acceptable(pattern: str) -> bool:
    """Whether the engine takes a pattern, and takes it cheaply."""
    if not _is_small(pattern):
        return False
    try:
        run(_MATCHES, {"pattern": pattern})
    except Exception:
        return False
    return True


def _is_small(pattern: str) -> bool:
    """Weighed with the classes of letters, digits and spaces as wide as the engine's, which are those of Unicode."""
    weighed = _WIDE_CLASS.sub(lambda match: match.group() if match["other"] else r"\p{L}", pattern)
    options = jsonschema_rs.RegexOptions(size_limit=_MAX_COMPILED, dfa_size_limit=_MAX_COMPILED)
    try:
        jsonschema_rs.Draft202012Validator({"pattern": weighed}, pattern_options=options)
    except ValueError:
        return False
    return True
