"""The way out for notices; the app that guards all ways out says how it is gone."""

from collections.abc import Callable, Mapping
from typing import NamedTuple


class Reply(NamedTuple):
    """What a receiver answered; the words to it are nobody's business."""

    status: int
    retry_after: str = ""  # the header as it came


Way = Callable[[str, bytes, Mapping[str, str], float], Reply]  # address, body, headers, seconds; raises Undelivered

_ways: list[Way] = []


def guarded_by(way: Way) -> Way:
    """Registers how a notice leaves; once, at start-up."""
    _ways[:] = [way]
    return way


def post(address: str, body: bytes, headers: Mapping[str, str], *, within: float) -> Reply:
    """The receiver's answer, or Undelivered."""
    return _ways[0](address, body, headers, within)
