"""Sizes as manifests write them."""

_UNITS = {"k": 1 << 10, "m": 1 << 20, "g": 1 << 30}


def in_bytes(size: str) -> int:
    """`64m` in bytes."""
    return int(size[:-1]) * _UNITS[size[-1]]
