"""Tokens that an authorization server signed: whose key, by which issuer, for whom, until when."""

import base64
import binascii
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import jwt
from django.conf import settings

from policy import keysets
from policy.keyset import ALGORITHMS, PublicKey
from registry import strictjson

MAX_LIFE = 24 * 3600
LEEWAY = 60
KINDS = ("jwt", "at+jwt", "application/at+jwt")  # what "typ" may say; a token made for something else says so
_JWS = jwt.PyJWS(algorithms=list(ALGORITHMS.values()))


class BadToken(Exception):
    """The token does not hold; the message is empty unless whoever sent it has one that the issuer did sign."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Issued:
    """What a token says that holds."""

    issuer: str
    agent: Any  # as claimed: anything that JSON has
    expires: float
    claims: Mapping[str, Any]


def header_of(token: str) -> Mapping[str, Any] | None:
    """The header, if it names an algorithm of issuers; nothing it says has been proven."""
    encoded = token.partition(".")[0]
    try:
        decoded = base64.b64decode(encoded + "=" * (-len(encoded) % 4), altchars=b"-_", validate=True)
        told = strictjson.loads(decoded)
    except (binascii.Error, ValueError):
        return None
    return told if isinstance(told, dict) and told.get("alg") in ALGORITHMS.values() else None


def verified(token: str, header: Mapping[str, Any], *, resource: str) -> Issued:
    """What the token says, or BadToken; keys come from the set alone, whatever the header brings or points at."""
    key = _key(header)
    try:
        claims = strictjson.loads(_JWS.decode(token, key, algorithms=[header["alg"]]))
    except (jwt.PyJWTError, ValueError) as error:
        raise BadToken from error
    if not isinstance(claims, dict) or "cnf" in claims:  # bound to a proof that we do not ask for
        raise BadToken
    issuer = claims.get("iss")
    if not isinstance(issuer, str) or issuer not in settings.PLACET_JWT_ISSUERS:
        raise BadToken("The token's 'iss' is not accepted here")
    expires = _lifetime(claims)
    told = claims.get("aud")
    audiences = told if isinstance(told, list) else [told]
    accepted = [*settings.PLACET_JWT_AUDIENCE, *([resource] if resource else [])]
    if not any(audience in accepted for audience in audiences):
        raise BadToken("The token's 'aud' is not this server")
    agent = claims.get(settings.PLACET_JWT_AGENT_CLAIM)
    return Issued(issuer=issuer, agent=agent, expires=expires, claims=_with_scope(claims))


def _key(header: Mapping[str, Any]) -> PublicKey:
    """The key of the set that the header names; one that is not known may be new, so the set is looked at again."""
    algorithm, name, kind = header["alg"], header.get("kid"), header.get("typ", "jwt")
    is_plain = "crit" not in header and "b64" not in header and isinstance(kind, str) and kind.lower() in KINDS
    if not is_plain or not isinstance(name, str | None):
        raise BadToken
    for keys in (keysets.current, keysets.source().renewed):
        found = keys()
        if found is not None and (key := found.find(algorithm, name)) is not None:
            return key
    raise BadToken


def _lifetime(claims: Mapping[str, Any]) -> float:
    """The moment of its end; it has begun, is not over and does not last too long."""
    now = time.time()
    for name in ("nbf", "iat"):
        if name in claims and not _moment(claims[name]) <= now + LEEWAY:
            raise BadToken("The token is from the future")
    expires = _moment(claims.get("exp"))
    if expires <= now:
        raise BadToken("The token has expired")
    if expires > now + MAX_LIFE + LEEWAY:
        raise BadToken("The token's 'exp' is more than 24 hours ahead")
    return expires


def _with_scope(claims: Mapping[str, Any]) -> Mapping[str, Any]:
    """Some issuers write their limits as a list "scp"; to overlook it would be to give more than they gave."""
    if "scope" in claims or "scp" not in claims:
        return claims
    told = claims["scp"]
    is_list = isinstance(told, list) and all(isinstance(each, str) for each in told)
    return {**claims, "scope": " ".join(told) if is_list else told}


def _moment(value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise BadToken("The token's 'exp', 'nbf' and 'iat' must be numbers, and 'exp' must be there")
    return float(value)
