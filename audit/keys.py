"""Keys: names under which people keep secrets."""

import re

# Unmistakable wherever they stand in a name, once case, hyphens and underscores are gone.
_ANYWHERE = re.compile(
    r"password|passwd|passphrase|pwd|secret|token|apikey|auth(?!or)|authorization|credential|cookie|session|bearer"
    r"|privatekey|signature|cvv"
)
# Also parts of ordinary words (shipping, footprint, className), so they count only as words of their own.
_WORDS = frozenset({"pin", "otp", "ssn", "pincode", "totp"})
_BREAK = re.compile(r"[^A-Za-z0-9]+|(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])|(?<=[A-Za-z])(?=\d)")
_COUNTS = re.compile(r"tokens|tokencount|tokenlimit|tokenusage|sessions|signatures|cookies")
_MAX_REMEMBERED = 10_000

_remembered: dict[str, bool] = {}


def is_sensitive(key: str) -> bool:
    """Whether a value under this key is to be masked whole."""
    known = _remembered.get(key)
    if known is None:
        if len(_remembered) >= _MAX_REMEMBERED:
            _remembered.clear()
        known = _sounds_sensitive(key)
        if len(key) <= 200:
            _remembered[key] = known
    return known


def _sounds_sensitive(key: str) -> bool:
    squeezed = re.sub(r"[-_\s.]", "", key).lower()
    if _ANYWHERE.search(squeezed) or squeezed in _WORDS:
        return True
    return any(word.lower() in _WORDS for word in _BREAK.split(key))


def counts_things(key: str) -> bool:
    """Whether a number under this key says how many (max_tokens), not which."""
    return _COUNTS.search(re.sub(r"[-_\s.]", "", key).lower()) is not None
