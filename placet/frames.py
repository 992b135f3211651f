"""Frames: four bytes of length, big-endian, then one JSON object. The tongue of hosts and their pool."""

import json
import os
from typing import Any

_encode = json.JSONEncoder(ensure_ascii=False, allow_nan=False, check_circular=False, separators=(",", ":")).encode
_decode = json.JSONDecoder().raw_decode  # frames hold no white space around their object


def pack(frame: dict[str, Any]) -> bytes:
    """One frame as bytes; ValueError if it has no JSON form."""
    body = _encode(frame).encode()
    return len(body).to_bytes(4, "big") + body


def write(fd: int, packed: bytes) -> None:
    """Writes all of it."""
    sent = os.write(fd, packed)
    while sent < len(packed):
        sent += os.write(fd, memoryview(packed)[sent:])


def read(fd: int) -> dict[str, Any] | None:
    """The next frame, or None when the other end is gone."""
    head = _exactly(fd, 4)
    body = _exactly(fd, int.from_bytes(head, "big")) if head else None
    frame: dict[str, Any] | None = _decode(body.decode())[0] if body else None
    return frame


def _exactly(fd: int, length: int) -> bytes | None:
    chunk = os.read(fd, length)
    if len(chunk) == length:
        return chunk
    parts = [chunk]
    while chunk:
        length -= len(chunk)
        if not length:
            return b"".join(parts)
        chunk = os.read(fd, min(length, 1 << 20))
        parts.append(chunk)
    return None
