"""Spellings: one secret in each of the fourteen encodings that redaction promises to know."""

import base64
import html
import json
import shlex
from collections.abc import Iterator
from urllib.parse import quote, quote_plus

SECRETS = {
    "plain": "correct-horse-battery-staple",
    "awkward": "p'a\"ß w%41\\z&1<+/=x9",
    "emoji": "schlüssel😀🔑geheim",
    "digits": "8837261905",
    "eight": "aB3$xY7!",
    "lines": "first line\nsecond line\n",
    "padded": "ends with percent%",
    "quotes": "'\"'\"'\"'\"",
}
B = "A1b2C3d4E5f6G7h8I9j0"


def spellings(secret: str) -> Iterator[tuple[str, str]]:
    """Names and texts; every text holds the whole secret."""
    raw = secret.encode()
    units = [f"{unit:04x}" for unit in _utf16(secret)]
    every_byte = "".join(f"%{byte:02x}" for byte in raw)
    yield "raw", secret
    yield "JSON", json.dumps(secret, ensure_ascii=False)
    yield "JSON ASCII", json.dumps(secret)
    yield "JSON in JSON", json.dumps(json.dumps(secret))
    yield "JSON all escaped", "".join(f"\\u{unit}" for unit in units)
    yield "JSON all escaped, upper case", "".join(f"\\u{unit.upper()}" for unit in units)
    yield "percent", quote(secret)
    yield "percent, nothing safe", quote(secret, safe="")
    yield "percent plus", quote_plus(secret)
    yield "percent every byte", every_byte
    yield "percent every byte, upper case", every_byte.upper()
    yield "double percent", quote(quote(secret, safe=""), safe="")
    for offset in range(3):
        around = b"user:"[:offset] + raw + b"tail"[:offset]
        yield f"Base64 at {offset}", base64.b64encode(around).decode()
        yield f"Base64 at {offset}, no padding", base64.b64encode(around).decode().rstrip("=")
        yield f"Base64url at {offset}", base64.urlsafe_b64encode(around).decode()
        yield f"Base64url at {offset}, no padding", base64.urlsafe_b64encode(around).decode().rstrip("=")
    yield "hex", raw.hex()
    yield "hex, upper case", raw.hex().upper()
    yield "hex, mixed case", "".join(c.upper() if i % 3 else c for i, c in enumerate(raw.hex()))
    yield "HTML", html.escape(secret)
    yield "HTML decimal", "".join(f"&#{ord(letter)};" for letter in secret)
    yield "HTML hex", "".join(f"&#x{ord(letter):x};" for letter in secret)
    yield "repr", repr(secret)
    yield "repr of bytes", repr(raw)
    yield "shell", shlex.quote(secret)
    yield "shell, other way", "'" + secret.replace("'", "'\\''") + "'"
    yield "UTF-16 LE", secret.encode("utf-16-le").decode("latin-1")
    yield "UTF-16 BE", secret.encode("utf-16-be").decode("latin-1")
    long = b"x" * 41 + raw + b"y" * 70
    for width in (64, 76):
        for name, text in (("Base64", base64.b64encode(long).decode()), ("hex", long.hex()), ("raw", long.decode())):
            for end in ("\n", "\r\n"):
                yield f"{name} folded at {width} by {end!r}", end.join(_folded(text, width))


def _utf16(text: str) -> list[int]:
    raw = text.encode("utf-16-be")
    return [int.from_bytes(raw[at : at + 2], "big") for at in range(0, len(raw), 2)]


def _folded(text: str, width: int) -> list[str]:
    return [text[at : at + width] for at in range(0, len(text), width)]
