"""Secrets as files in one mounted folder, PLACET_SECRET_FILES; the name is the file's name."""

import os
import stat
from pathlib import Path

from django.conf import settings

from execution.models import Secret
from execution.secretsources.base import Found, SourceError, found_text

MAX_BYTES = 262_144


def find(secret: Secret, deadline: float) -> Found:
    """A link may lead to another file of the folder, as in a mounted Kubernetes volume, but never out of it."""
    if not settings.PLACET_SECRET_FILES:
        raise SourceError("PLACET_SECRET_FILES names no folder")
    place = f"the file {secret.name}"
    try:
        folder = Path(settings.PLACET_SECRET_FILES).resolve(strict=True)
        path = (folder / secret.name).resolve(strict=True)
        if not path.is_relative_to(folder):
            raise SourceError(f"{place} leads out of PLACET_SECRET_FILES")
        content = _content(path)
    except (OSError, RuntimeError):  # a loop of links is a RuntimeError
        raise SourceError(f"{place} is not in PLACET_SECRET_FILES, or cannot be read") from None
    if content is None:
        raise SourceError(f"{place} is not an ordinary file of at most {MAX_BYTES} bytes")
    try:
        return found_text(content.decode(), place)
    except UnicodeDecodeError:
        raise SourceError(f"{place} is not UTF-8") from None


def _content(path: Path) -> bytes | None:
    # The links were followed above: what is one now was put there since. A pipe must not hold us up.
    handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    with os.fdopen(handle, "rb") as file:
        if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
            return None
        content = file.read(MAX_BYTES + 1)
    return content if len(content) <= MAX_BYTES else None
