"""Found, SourceError: what a source of secrets gives back."""

import hashlib
from dataclasses import dataclass

from execution.credentials import Unseen
from execution.secretvalues import ValueProblem, from_text


class SourceError(Exception):
    """The source has no such value, or cannot be asked now; the message names places, never a value."""

    def __init__(self, reason: str, *, can_retry: bool = False) -> None:
        super().__init__(reason)
        self.can_retry = can_retry


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """A secret's texts by key, and a word that changes whenever they do."""

    values: Unseen
    version: str


def found_text(text: str, place: str) -> Found:
    """What a source that keeps texts holds at a place."""
    if not text.strip():
        raise SourceError(f"{place} is empty")
    try:
        values = from_text(text)
    except ValueProblem as error:
        raise SourceError(f"{place}: {error}") from None
    return Found(values=values, version=hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest())
