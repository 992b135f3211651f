"""Merkle: one hash that stands for an ordered list of events (the tree of RFC 6962)."""

import hashlib
from collections.abc import Iterable

EMPTY = hashlib.sha256(b"").digest()


class Merkle:
    """Takes leaves one by one and keeps only the roots of full subtrees, however many leaves there are."""

    def __init__(self) -> None:
        self.count = 0
        self._full: list[tuple[int, bytes]] = []  # (size, root), sizes falling

    def add(self, event_id: int, event_hash: bytes) -> None:
        """One event; its id is part of the leaf, so that two rows cannot trade places."""
        size, node = 1, hashlib.sha256(b"\x00" + event_id.to_bytes(8, "big") + event_hash).digest()
        full = self._full
        while full and full[-1][0] == size:
            node = hashlib.sha256(b"\x01" + full.pop()[1] + node).digest()
            size *= 2
        full.append((size, node))
        self.count += 1

    def root(self) -> bytes:
        """The root over all leaves so far."""
        if not self._full:
            return EMPTY
        node = self._full[-1][1]
        for _, left in reversed(self._full[:-1]):
            node = hashlib.sha256(b"\x01" + left + node).digest()
        return node


def root_of(events: Iterable[tuple[int, bytes]]) -> bytes:
    """The root over (id, hash) pairs in the order given."""
    tree = Merkle()
    for event_id, event_hash in events:
        tree.add(event_id, event_hash)
    return tree.root()
