"""Text from outside, made safe to look at: what would be invisible, or move other text about, is shown by name."""

import re

# Controls, soft hyphen, blank fillers, zero-width characters, bidi marks and isolates, line and paragraph separators,
# invisible operators, byte order mark, interlinear marks, lone surrogates, tags.
_UNSEEN = re.compile(
    "[\x00-\x1f\x7f-\x9f\xad\u061c\u115f\u1160\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\u3164\ufeff\uffa0"
    "\ufff9-\ufffb\ud800-\udfff\U000e0000-\U000e007f]"
)


def visible(text: str, *, keep: str = "") -> str:
    """The text with control, bidi and zero-width characters written out; those in `keep` stay as they are."""
    return _UNSEEN.sub(lambda match: match[0] if match[0] in keep else _name(match[0]), text)


def _name(character: str) -> str:
    code = ord(character)
    if code < 0x20:
        return chr(0x2400 + code)  # Unicode has a picture for each of these
    return "␡" if code == 0x7F else f"⟨U+{code:04X}⟩"
