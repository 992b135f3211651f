"""Canaries: texts that occur nowhere else, in the fourteen encodings; it needs nothing but the standard library,
for a tool in a process of its own uses it too."""

import base64
import hashlib
import json
import shlex
from collections.abc import Callable
from urllib.parse import quote


def canary(label: str) -> str:
    """The canary of this label: its core is plain, and around it is a letter for every encoding to stumble over."""
    return f"{core(label)} \"'ü%/+<&>{core(label + '!')}"


def core(label: str) -> str:
    return "cnry" + hashlib.sha256(label.encode()).hexdigest()[:12]


def _fold(text: str) -> str:
    return "\n".join(text[at : at + 64] for at in range(0, len(text), 64))


ENCODINGS: dict[str, Callable[[str], str]] = {
    "raw": lambda text: text,
    "json": lambda text: json.dumps(text, ensure_ascii=False),
    "json_escaped": lambda text: "".join(f"\\u{ord(letter):04X}" for letter in text),
    "percent": lambda text: quote(text),
    "percent_every_byte": lambda text: "".join(f"%{byte:02x}" for byte in text.encode()),
    "double_percent": lambda text: quote(quote(text, safe=""), safe=""),
    "base64": lambda text: base64.b64encode(b"x" + text.encode()).decode(),
    "base64url": lambda text: base64.urlsafe_b64encode(b"xy" + text.encode()).decode().rstrip("="),
    "hex": lambda text: text.encode().hex().upper(),
    "html": lambda text: "".join(f"&#{ord(letter)};" for letter in text),
    "repr": lambda text: repr(text.encode()),
    "shell": lambda text: shlex.quote(text),
    "utf16": lambda text: base64.b64encode(text.encode("utf-16-le")).decode(),
    "folded": lambda text: _fold("-" * 50 + text),
}
