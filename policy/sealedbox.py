"""Sealed: bytes that only the holder of a key outside the database can read, bound to the row they lie in."""

import os
from functools import lru_cache

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from django.conf import settings

_NONCE = 12


class Unsealable(Exception):
    """The seal is broken, belongs to another row, or its key is gone."""


def seal(plain: bytes, *, bound_to: str) -> bytes:
    """`key id length, key id, nonce, ciphertext`; `bound_to` names the row, so a copy elsewhere does not open."""
    key_id, key = next(iter(settings.PLACET_SEALING_KEYS.items()))
    name = key_id.encode()
    nonce = os.urandom(_NONCE)
    sealed = _cipher(key).encrypt(nonce, plain, bound_to.encode())
    return bytes([len(name)]) + name + nonce + sealed


def unseal(sealed: bytes | memoryview, *, bound_to: str) -> bytes:
    """What was sealed for exactly this row; anything else is Unsealable."""
    sealed = bytes(sealed)
    at = 1 + (sealed[0] if sealed else 0)
    key = settings.PLACET_SEALING_KEYS.get(key_of(sealed))
    if key is None:
        raise Unsealable(f"the key that sealed {bound_to} is not among PLACET_SEALING_KEYS")
    try:
        return _cipher(key).decrypt(sealed[at : at + _NONCE], sealed[at + _NONCE :], bound_to.encode())
    except (InvalidTag, ValueError):
        raise Unsealable(f"what is sealed at {bound_to} was altered or belongs to another row") from None


def key_of(sealed: bytes | memoryview) -> str:
    """The id of the key that something was sealed with."""
    sealed = bytes(sealed)
    return sealed[1 : 1 + (sealed[0] if sealed else 0)].decode("utf-8", "replace")


@lru_cache(maxsize=16)
def _cipher(key: bytes) -> AESGCM:
    return AESGCM(key)
