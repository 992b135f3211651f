"""KeySet: the public keys of an authorization server, each good for one algorithm alone."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePublicKey
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPublicKey
from jwt import InvalidKeyError
from jwt.algorithms import ECAlgorithm, RSAAlgorithm

from registry import strictjson

MAX_BYTES = 262_144
MAX_KEYS = 100
RSA_BITS = range(2048, 8193)  # shorter ones can be broken, longer ones take too long
# The key decides how a signature is checked, never the token: what is not named here is no algorithm of ours.
ALGORITHMS = {"RSA": "RS256", "EC": "ES256"}

PublicKey = RSAPublicKey | EllipticCurvePublicKey


class BadKeySet(ValueError):
    """What is there cannot be used as a set of keys; the message says why and shows none of it."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class KeySet:
    """Public keys by algorithm and name; two readings of the same text are two sets."""

    text: bytes = field(repr=False)
    keys: Mapping[str, Mapping[str | None, PublicKey]]

    def find(self, algorithm: str, name: str | None) -> PublicKey | None:
        """The key that a token means; one that names none means the only key of its kind."""
        keys = self.keys.get(algorithm, {})
        if name is not None:
            return keys.get(name)
        return next(iter(keys.values())) if len(keys) == 1 else None


def read(text: bytes) -> KeySet:
    """The keys that can check our kinds of signatures; others are left out, and a set without any is none."""
    try:
        told = strictjson.loads(text, max_bytes=MAX_BYTES)
    except strictjson.StrictJSONError as error:
        raise BadKeySet(error.message.rstrip(".")) from error
    listed = told.get("keys") if isinstance(told, dict) else None
    if not isinstance(listed, list) or not all(isinstance(each, dict) for each in listed):
        raise BadKeySet('It must be an object with a list "keys" of objects')
    if len(listed) > MAX_KEYS:
        raise BadKeySet(f"It holds more than {MAX_KEYS} keys")
    keys: dict[str, dict[str | None, PublicKey]] = {}
    for jwk in listed:
        if jwk.get("kty") != "oct" and "d" in jwk:
            raise BadKeySet("It holds a private key, which nobody but its owner may have")
        algorithm, key = _algorithm(jwk), _public(jwk)
        if algorithm is None or key is None:
            continue
        named = keys.setdefault(algorithm, {})
        name = jwk.get("kid")
        if name is not None and not isinstance(name, str):
            raise BadKeySet("The 'kid' of a key must be a text")
        if name in named:
            raise BadKeySet(f"Two keys for {algorithm} have the same 'kid', or none")
        named[name] = key
    if not keys:
        raise BadKeySet("It holds no key for RS256 (RSA of 2048 bits or more) or ES256 (P-256) signatures")
    return KeySet(text=text, keys=keys)


def _algorithm(jwk: Mapping[str, Any]) -> str | None:
    """What a key checks, by its kind; None if it is of another kind, or made for something else."""
    kind = jwk.get("kty")
    algorithm = ALGORITHMS.get(kind) if isinstance(kind, str) else None
    operations = jwk.get("key_ops", ["verify"])
    if (
        algorithm is None
        or jwk.get("use", "sig") != "sig"
        or jwk.get("alg", algorithm) != algorithm
        or not (isinstance(operations, list) and "verify" in operations)
        or (kind == "EC" and jwk.get("crv") != "P-256")
    ):
        return None
    return algorithm


def _public(jwk: Mapping[str, Any]) -> PublicKey | None:
    """The key itself; None if it is of no use, such as a weak one."""
    try:
        key = (RSAAlgorithm if jwk.get("kty") == "RSA" else ECAlgorithm).from_jwk(dict(jwk))
    except (InvalidKeyError, ValueError, TypeError, AttributeError):
        return None
    if isinstance(key, RSAPublicKey):
        return key if key.key_size in RSA_BITS else None
    return key if isinstance(key, EllipticCurvePublicKey) else None
