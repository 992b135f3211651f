"""A value as it truly is: canonical JSON over several lines, with everything that cannot be seen written out."""

import json
import re
import unicodedata
from dataclasses import dataclass
from typing import Any

from django.utils.html import escape
from django.utils.safestring import SafeString, mark_safe

# Letters and marks that leave no ink although their category does not say so: fillers, joiners, selectors, a blank.
_BLANK = frozenset(
    map(chr, (0x034F, 0x115F, 0x1160, 0x17B4, 0x17B5, 0x180B, 0x180C, 0x180D, 0x180F, 0x2800, 0x3164, 0xFFA0))
) | frozenset(map(chr, [*range(0xFE00, 0xFE10), *range(0xE0100, 0xE01F0)]))
_UNSEEN = frozenset(("Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"))
_OUTSIDE_ASCII = re.compile(r"[^\n -~]")
_WORD = re.compile(r"[^\W\d_]+")
_SCRIPTS = ("LATIN", "CYRILLIC", "GREEK", "ARMENIAN", "CHEROKEE", "COPTIC")  # those that share shapes with Latin


@dataclass(frozen=True, slots=True)
class Exact:
    """A text to look at before one agrees to it."""

    html: SafeString  # escaped; what was invisible stands in <mark>
    length: int  # of the whole text
    hidden: int  # how many characters were written out
    mixed: tuple[str, ...]  # words whose letters come from alphabets that look alike
    is_cut: bool


def exact(value: Any, limit: int) -> Exact:
    """A JSON value, its keys in canonical order, at most `limit` characters of it."""
    text = json.dumps(value, indent=2, ensure_ascii=False, sort_keys=True)
    return Exact(
        html=marked(text[:limit]),
        length=len(text),
        hidden=sum(1 for match in _OUTSIDE_ASCII.finditer(text) if _is_unseen(match[0])),
        mixed=tuple(dict.fromkeys(word for word in _WORD.findall(text) if _is_mixed(word)))[:5],
        is_cut=len(text) > limit,
    )


def marked(text: str) -> SafeString:
    """The text as HTML; line feeds stay, whatever else has no ink of its own is named in a <mark>."""
    # Escaping first: the marks are ours, and nothing in the text can make one.
    return mark_safe(_OUTSIDE_ASCII.sub(_shown, escape(text)))


def _shown(match: re.Match[str]) -> str:
    character = match[0]
    return f"<mark>⟦U+{ord(character):04X}⟧</mark>" if _is_unseen(character) else character


def _is_unseen(character: str) -> bool:
    category = unicodedata.category(character)
    return category in _UNSEEN or category == "Zs" or character in _BLANK


def _is_mixed(word: str) -> bool:
    if word.isascii():
        return False
    names = (unicodedata.name(letter, "") for letter in word)
    return len({script for name in names for script in _SCRIPTS if name.startswith(script)}) > 1
