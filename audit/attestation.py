"""Attestation: a signature of the seal key under something that leaves the house, such as a pack of evidence."""

from audit.statement import public_keys, seal_key

PACK = b"placet.evidence.pack.v1\0"  # so that no signature under a pack can pass for one under a seal


def attested(purpose: bytes, body: bytes) -> tuple[str, bytes]:
    """The name of the current seal key, and its signature; the same for the same bytes."""
    key_id, key = seal_key()
    return key_id, key.sign(purpose + body)


def published_keys() -> dict[str, str]:
    """Every public seal key in hex, the current one first, by its name."""
    return {name: key.public_bytes_raw().hex() for name, key in public_keys().items()}
