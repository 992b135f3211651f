"""Statement: what a seal says, in the exact bytes that are signed, hashed and written to the seal file."""

import hashlib
import json
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from django.conf import settings

from audit.canonical import canonical

ORIGIN = bytes(32)  # what the first seal points back to

_PURPOSE = b"placet.audit.seal.v1\0"


@dataclass(frozen=True, slots=True, kw_only=True)
class Statement:
    """One seal: these and only these events existed, and the seal before this one was that."""

    n: int
    first_id: int
    last_id: int
    count: int
    gaps: str  # canonical JSON [[from, to], …]
    merkle_root: bytes
    prev_seal_hash: bytes
    sealed_at: datetime
    key_id: str
    signature: bytes = b""

    @property
    def body(self) -> bytes:
        """Everything but the signature, as canonical JSON."""
        return canonical(self._facts())

    @property
    def hash(self) -> bytes:
        """What the next seal points back to."""
        return hashlib.sha256(_PURPOSE + self.body + self.signature).digest()

    @property
    def line(self) -> bytes:
        """The seal as one line of the seal file."""
        return canonical({**self._facts(), "signature": self.signature.hex()}) + b"\n"

    @classmethod
    def parse(cls, line: bytes) -> "Statement | None":
        """The seal of one line, or None if the line is not a whole seal (torn by a crash, or overwritten)."""
        try:
            facts: dict[str, Any] = json.loads(line)
            parsed = cls(
                n=int(facts["n"]),
                first_id=int(facts["first_id"]),
                last_id=int(facts["last_id"]),
                count=int(facts["count"]),
                gaps=canonical(facts["gaps"]).decode(),
                merkle_root=bytes.fromhex(facts["merkle_root"]),
                prev_seal_hash=bytes.fromhex(facts["prev_seal_hash"]),
                sealed_at=datetime.fromisoformat(facts["sealed_at"]),
                key_id=str(facts["key_id"]),
                signature=bytes.fromhex(facts["signature"]),
            )
            return parsed if parsed.line == line.rstrip(b"\n") + b"\n" else None
        except (ValueError, KeyError, TypeError, AttributeError):
            return None

    def is_signed(self) -> bool:
        """Whether one of our seal keys really signed this."""
        key = public_keys().get(self.key_id)
        if key is None:
            return False
        try:
            key.verify(self.signature, _PURPOSE + self.body)
        except InvalidSignature:
            return False
        return True

    def absent(self) -> list[tuple[int, int]]:
        """The id ranges inside first_id..last_id that held no event when this was sealed."""
        return [(int(start), int(end)) for start, end in json.loads(self.gaps)]

    def _facts(self) -> dict[str, Any]:
        return {
            "n": self.n,
            "first_id": self.first_id,
            "last_id": self.last_id,
            "count": self.count,
            "gaps": json.loads(self.gaps),
            "merkle_root": self.merkle_root.hex(),
            "prev_seal_hash": self.prev_seal_hash.hex(),
            "sealed_at": self.sealed_at.astimezone(UTC).isoformat(timespec="microseconds"),
            "key_id": self.key_id,
        }


def signed(**facts: Any) -> Statement:
    """A statement under the current seal key."""
    key_id, key = seal_key()
    draft = Statement(key_id=key_id, **facts)
    return replace(draft, signature=key.sign(_PURPOSE + draft.body))


def seal_key() -> tuple[str, Ed25519PrivateKey]:
    """The current seal key, and its name."""
    key = _private(settings.PLACET_SEAL_SEED)
    return _fingerprint(key.public_key()), key


def public_keys() -> dict[str, Ed25519PublicKey]:
    """Every key whose seals count: the current one, then `PLACET_SEAL_OLD_PUBLIC_KEYS` (32 bytes each)."""
    current = _private(settings.PLACET_SEAL_SEED).public_key()
    old = [Ed25519PublicKey.from_public_bytes(raw) for raw in getattr(settings, "PLACET_SEAL_OLD_PUBLIC_KEYS", ())]
    return {_fingerprint(key): key for key in (current, *old)}


@lru_cache(maxsize=8)
def _private(seed: bytes) -> Ed25519PrivateKey:
    return Ed25519PrivateKey.from_private_bytes(seed)


def _fingerprint(key: Ed25519PublicKey) -> str:
    return hashlib.sha256(key.public_bytes_raw()).hexdigest()[:16]
