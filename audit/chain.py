"""Chain: the tail of one subject's events, and the keyed hash that links each event to the one before."""

from dataclasses import dataclass
from functools import lru_cache

import orjson
from django.conf import settings

from audit.mac import mac

ORIGIN = bytes(32)  # what the first event of a subject points back to

_PURPOSE = "placet.audit.event.v1"


@dataclass(slots=True)
class Chain:
    """The tail of one subject's chain, in the hands of whoever holds the subject; valid until the transaction ends."""

    kind: str
    id: str
    seq: int = 0
    hash: bytes = ORIGIN

    def move_to(self, later: "Chain") -> None:
        """The events up to `later` have been written."""
        self.seq, self.hash = later.seq, later.hash


@lru_cache(maxsize=64)
def key_id(key: bytes) -> str:
    """A name for a key that does not betray it."""
    return mac(key, b"placet.audit.key-id").hex()[:16]


def known_keys() -> dict[str, bytes]:
    """Every audit key that rows may have been written under: the current one, then `PLACET_AUDIT_OLD_KEYS`."""
    keys: list[bytes] = [settings.PLACET_AUDIT_KEY, *getattr(settings, "PLACET_AUDIT_OLD_KEYS", ())]
    return {key_id(key): key for key in keys}


def row_hash(
    key: bytes,
    key_name: str,
    kind: str,
    id: str,
    seq: int,
    event: str,
    actor: str,
    at: str,
    outcome: str,
    detail: str,
    trace_id: str,
    prev_hash: bytes,
) -> bytes:
    """The keyed hash over every fact of one row; a JSON array keeps neighbouring texts apart."""
    facts = [_PURPOSE, key_name, kind, id, seq, event, actor, at, outcome, detail, trace_id, prev_hash.hex()]
    return mac(key, orjson.dumps(facts))
