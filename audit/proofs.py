"""Proofs: the least that leads from some events to the signed root of their seal, without showing the others."""

import hashlib
from bisect import bisect_left
from collections.abc import Iterator, Sequence


def leaf(event_id: int, event_hash: bytes) -> bytes:
    """What one event is in the tree of its seal."""
    return hashlib.sha256(b"\x00" + event_id.to_bytes(8, "big") + event_hash).digest()


def split(size: int) -> int:
    """How many leaves go to the left: the largest power of two that leaves some for the right."""
    return 1 << (size - 1).bit_length() - 1


def pruned(leaves: Sequence[bytes], shown: Sequence[int]) -> list[bytes]:
    """The roots of the largest subtrees in which nothing is shown, from left to right; `shown` are places, rising.

    Whoever has the shown leaves and the number of all leaves rebuilds the root from these and learns nothing else.
    """
    return list(_pruned(leaves, shown, 0, len(leaves)))


def _pruned(leaves: Sequence[bytes], shown: Sequence[int], start: int, end: int) -> Iterator[bytes]:
    if not _any(shown, start, end):
        yield _root(leaves, start, end)
    elif end - start > 1:
        middle = start + split(end - start)
        yield from _pruned(leaves, shown, start, middle)
        yield from _pruned(leaves, shown, middle, end)


def _any(shown: Sequence[int], start: int, end: int) -> bool:
    place = bisect_left(shown, start)
    return place < len(shown) and shown[place] < end


def _root(leaves: Sequence[bytes], start: int, end: int) -> bytes:
    if end - start == 1:
        return leaves[start]
    middle = start + split(end - start)
    return hashlib.sha256(b"\x01" + _root(leaves, start, middle) + _root(leaves, middle, end)).digest()
