"""A secret's value: a text, or a JSON object of texts; what may be kept, and what may become a header."""

import re
from collections.abc import Mapping
from typing import Any

from audit.needles import problem
from execution.credentials import Unseen
from registry import strictjson

HIDDEN = "***"  # what is shown in place of a value; given back, it means: as it was
WHOLE = "value"  # the name of a text that is the whole secret
MAX_CHARACTERS = 65_536
MAX_KEYS = 50

_KEY = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,63}", re.ASCII)
_PUBLIC = {"client_id"}  # a name that OAuth sends in clear and that may be short


class ValueProblem(Exception):
    """A value that cannot be kept or sent; the message says why and never quotes it."""


def from_text(text: str) -> Unseen:
    """The value that a text stands for: one line end at its end is not part of it, a JSON object is its texts."""
    text = text.removesuffix("\n").removesuffix("\r")
    if not text.lstrip().startswith("{"):
        return from_json(text)
    try:
        found = strictjson.loads(text.encode("utf-8", "surrogatepass"))
    except ValueError:
        return from_json(text)  # a text that only begins like one
    return from_json(found)


def from_json(value: Any) -> Unseen:
    """A text or an object of texts as one form; anything else is refused."""
    if isinstance(value, str):
        return Unseen({WHOLE: value})
    if not isinstance(value, Mapping) or not value:
        raise ValueProblem("A secret is a text, or a JSON object of texts.")
    if len(value) > MAX_KEYS:
        raise ValueProblem(f"A secret has at most {MAX_KEYS} keys.")
    for key, text in value.items():
        if not isinstance(key, str) or not _KEY.fullmatch(key):
            raise ValueProblem("The keys of a secret are words of letters, digits, dot, dash and underscore.")
        if not isinstance(text, str):
            raise ValueProblem(f"{key}: must be a text.")
    return Unseen(value)


def merged(given: Mapping[str, str], kept: Mapping[str, str]) -> Unseen:
    """What was given, with the kept text wherever it says HIDDEN."""
    lost = sorted(key for key, text in given.items() if text == HIDDEN and key not in kept)
    if lost:
        raise ValueProblem(f"{', '.join(lost)}: there is no value yet that {HIDDEN} could stand for.")
    return Unseen({key: kept[key] if text == HIDDEN else text for key, text in given.items()})


def check(values: Mapping[str, str]) -> None:
    """Refuses what could not be masked safely, or would break out of a header."""
    for key, text in values.items():
        where = "" if key == WHOLE else f"{key}: "
        if not text:
            raise ValueProblem(f"{where}A secret cannot be empty.")
        if len(text) > MAX_CHARACTERS:
            raise ValueProblem(f"{where}A secret has at most {MAX_CHARACTERS} characters.")
        if key not in _PUBLIC and (why := problem(text)):
            raise ValueProblem(f"{where}{why}")
        if not fits_header(text):
            raise ValueProblem(f"{where}A secret holds no line ends, no control characters and only Latin-1 letters.")


def fits_header(text: str) -> bool:
    """Whether a text can be sent as a header's value, or a part of one."""
    return all(letter == "\t" or (" " <= letter <= "\xff" and letter != "\x7f") for letter in text)
