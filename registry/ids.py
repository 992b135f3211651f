"""Ids that grow with time, so that the newest rows lie together in every index."""

import os
import time
import uuid


def new_id() -> uuid.UUID:
    """A UUIDv7; its first twelve bits of chance are the part of the millisecond, so that what comes later is larger."""
    millis, rest = divmod(time.time_ns(), 1_000_000)
    bits = (millis << 80) | (0x7 << 76) | ((rest << 12) // 1_000_000 << 64)
    bits |= (0x2 << 62) | (int.from_bytes(os.urandom(8), "big") & ((1 << 62) - 1))
    return uuid.UUID(int=bits)
