"""Marks: what stands where a secret stood."""

import re

from django.conf import settings

from audit.mac import mac

UNREDACTABLE = "[UNREDACTABLE]"

_FORM = re.compile(r"\[REDACTED:[\w.:@/#-]{1,100}:[0-9a-f]{12}\]|\[UNREDACTABLE\]|\[BINARY:\d{1,12}:[0-9a-f]{64}\]")
_ODD = re.compile(r"[^\w.:@/-]", re.ASCII)


def mark(label: str, value: str) -> str:
    """The same value gives the same mark under one audit key, and the mark tells nothing else about it."""
    digest = mac(settings.PLACET_AUDIT_KEY, value.encode("utf-8", "surrogatepass"))
    return f"[REDACTED:{_ODD.sub('_', label)[:64] or 'secret'}:{digest.hex()[:12]}]"


def is_mark(text: str) -> bool:
    """Whether a text is nothing but one mark, so that redacting twice changes nothing."""
    return text.startswith("[") and _FORM.fullmatch(text) is not None


def clip(text: str, limit: int) -> str:
    """At most `limit` characters of an already redacted text; says what it left out, and never cuts a mark in two."""
    if len(text) <= limit:
        return text
    note = f"… [{len(text)} characters]"
    end = max(0, limit - len(note))
    for found in _FORM.finditer(text, max(0, end - 200), min(len(text), end + 200)):
        if found.start() < end < found.end():
            end = found.start()
    return (text[:end] + note)[:limit]
