"""An authorization server as we see it: keys, the set it shows of them, and tokens it signs."""

from __future__ import annotations

import json
import time
from functools import cache
from typing import Any

import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from jwt.algorithms import ECAlgorithm, RSAAlgorithm

from tests.mcp.wire import modern, send

ISSUER = "https://login.example"
HEADER = '{"alg":"RS256","kid":"r1"}'
CALL = {"request": {"tool_id": "Calculator.Add", "input": {"a": 2, "b": 3}}}
MCP_CALL = {"name": "Calculator_Add", "arguments": {"a": 2, "b": 3}}
PrivateKey = rsa.RSAPrivateKey | ec.EllipticCurvePrivateKey


@cache
def rsa_key(name: str, bits: int = 2048) -> rsa.RSAPrivateKey:
    """One key per name and run, for making them takes long."""
    return rsa.generate_private_key(public_exponent=65537, key_size=bits)


@cache
def ec_key(name: str, curve: type[ec.EllipticCurve] = ec.SECP256R1) -> ec.EllipticCurvePrivateKey:
    return ec.generate_private_key(curve())


def jwk(key: PrivateKey, **more: Any) -> dict[str, Any]:
    """The public half; `...` takes a member away."""
    public = key.public_key()
    told = RSAAlgorithm.to_jwk(public) if isinstance(public, rsa.RSAPublicKey) else ECAlgorithm.to_jwk(public)
    members = {**json.loads(told), "key_ops": ..., **more}
    return {name: value for name, value in members.items() if value is not ...}


def key_set(*keys: dict[str, Any]) -> bytes:
    return json.dumps({"keys": keys}).encode()


def said(**changes: Any) -> dict[str, Any]:
    now = int(time.time())
    told = {"iss": ISSUER, "aud": "placet", "sub": "robot", "iat": now, "exp": now + 3600} | changes
    return {name: value for name, value in told.items() if value is not ...}


def issued(key: PrivateKey, kid: str | None = None, headers: dict[str, Any] | None = None, **changes: Any) -> str:
    """A token as the server signs it, but for what the test changes."""
    algorithm = "RS256" if isinstance(key, rsa.RSAPrivateKey) else "ES256"
    given = {**({"kid": kid} if kid is not None else {}), **(headers or {})}
    return jwt.encode(said(**changes), key, algorithm=algorithm, headers=given)


def signed_text(key: PrivateKey, header: str, payload: str) -> str:
    """Signed rightly, whatever stands in it."""
    name = "RS256" if isinstance(key, rsa.RSAPrivateKey) else "ES256"
    text = ".".join(jwt.utils.base64url_encode(part.encode()).decode() for part in (header, payload))
    signature = jwt.get_algorithm_by_name(name).sign(text.encode(), key)
    return f"{text}.{jwt.utils.base64url_encode(signature).decode()}"


def statuses(token: str) -> tuple[int, int]:
    """How /tools/call and /mcp answer one call."""
    return send(CALL, token, path="/tools/call").status_code, modern("tools/call", token, MCP_CALL).status_code


RSA, EC = rsa_key("first"), ec_key("first")
BOTH = pytest.mark.parametrize(("key", "kid"), [(RSA, "r1"), (EC, "e1")], ids=["RS256", "ES256"])
