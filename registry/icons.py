"""Icons: pictures that clients show beside a tool, as a manifest names them."""

import re
from typing import Any
from urllib.parse import urlsplit

from registry.fields import Fields, ManifestError

MAX_ICONS = 8
MAX_SRC = 32_000
_SIZE = re.compile(r"[1-9][0-9]{0,4}x[1-9][0-9]{0,4}|any", re.ASCII)
_MIME = re.compile(r"image/[a-z0-9][a-z0-9.+-]{0,60}", re.ASCII)
_DATA = re.compile(r"data:image/[a-z0-9][a-z0-9.+-]{0,60}(;[a-z0-9=-]+)*,[!-~]+", re.ASCII)


def icons(fields: Fields) -> tuple[dict[str, Any], ...]:
    """The icons of one tool, each checked; none if the manifest names none."""
    return tuple(_icon(item, path) for path, item in fields.items("icons", most=MAX_ICONS))


def _icon(value: Any, path: str) -> dict[str, Any]:
    fields = Fields(value, path, ("src", "mimeType", "sizes", "theme"))
    src = fields.text("src", most=MAX_SRC)
    if not _is_https(src) and not _DATA.fullmatch(src):
        raise ManifestError(fields.at("src"), "must be an https address or a data:image/… URI")
    found: dict[str, Any] = {"src": src}
    if fields.has("mimeType"):
        found["mimeType"] = fields.text("mimeType", most=100)
        if not _MIME.fullmatch(found["mimeType"]):
            raise ManifestError(fields.at("mimeType"), "must be the type of a picture, such as image/png")
    if sizes := fields.texts("sizes", most=20):
        for index, size in enumerate(sizes):
            if not _SIZE.fullmatch(size):
                raise ManifestError(f"{fields.at('sizes')}[{index}]", "must read 48x48, or any")
        found["sizes"] = sizes
    if fields.has("theme"):
        found["theme"] = fields.choice("theme", ("light", "dark"))
    return found


def _is_https(src: str) -> bool:
    if not src.isascii() or not src.isprintable() or " " in src:
        return False
    try:
        parts = urlsplit(src)
    except ValueError:
        return False
    return parts.scheme == "https" and bool(parts.hostname) and parts.username is None
