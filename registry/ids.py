"""Ids that grow with time, so that the newest rows lie together in every index."""

import os
import time
import uuid


def new_id() -> uuid.UUID:
    """A UUIDv7."""
    millis = time.time_ns() // 1_000_000
    bits = (millis << 80) | (0x7 << 76) | (int.from_bytes(os.urandom(10), "big") & ((1 << 76) - 1))
    bits = bits & ~(0x3 << 62) | (0x2 << 62)
    return uuid.UUID(int=bits)
