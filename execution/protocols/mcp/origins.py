"""Origins: a web page may speak to us only from this machine, from our own address, or from where settings say."""

from urllib.parse import urlsplit

from django.conf import settings

from registry.loopback import is_loopback


def is_allowed(origin: str) -> bool:
    """No origin: not a browser. Any other must be a web address that we know, so that no page can borrow our name."""
    if not origin:
        return True
    try:
        parts = urlsplit(origin)
        _ = parts.port  # read here, for this is where a bad one is found
    except ValueError:
        return False
    if parts.scheme not in ("http", "https") or not parts.hostname or origin != f"{parts.scheme}://{parts.netloc}":
        return False
    if "@" in parts.netloc:
        return False
    return is_loopback(parts.hostname) or origin.lower() in _known()


def _known() -> set[str]:
    own = urlsplit(settings.PLACET_URL)
    return {f"{own.scheme}://{own.netloc}".lower(), *(each.rstrip("/").lower() for each in settings.PLACET_ORIGINS)}
