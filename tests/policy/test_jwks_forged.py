"""What only looks like a token of the authorization server opens no door, whoever made it."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import time
from collections.abc import Callable
from typing import Any

import jwt
import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec, padding
from cryptography.hazmat.primitives.hashes import SHA256

from policy.agents import NewAgent
from policy.authentication import MAX_TOKEN, NotAuthenticated, authenticate
from tests.mcp.wire import modern
from tests.policy.issuer import (
    BOTH,
    EC,
    HEADER,
    RSA,
    PrivateKey,
    ec_key,
    issued,
    jwk,
    rsa_key,
    said,
    signed_text,
    statuses,
)
from tests.policy.tokens import bearer, raw

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("issuer_keys")]


def _public(key: PrivateKey) -> list[bytes]:
    """Every text of a public key that a careless reader might take for a secret."""
    public, encoding = key.public_key(), serialization.Encoding
    info = serialization.PublicFormat.SubjectPublicKeyInfo
    told = jwk(key, kid="r1", use="sig")
    return [
        public.public_bytes(encoding.PEM, info),
        public.public_bytes(encoding.DER, info),
        json.dumps(told).encode(),
        str(told.get("n", told.get("x"))).encode(),
        b"",
    ]


@BOTH
def test_a_public_key_is_no_secret_to_sign_with(robot: NewAgent, key: PrivateKey, kid: str) -> None:
    for secret in _public(key):
        for name, hashed in (("HS256", hashlib.sha256), ("HS384", hashlib.sha384), ("HS512", hashlib.sha512)):
            body = raw(json.dumps({"alg": name, "kid": kid}), json.dumps(said(exp=int(time.time()) + 300)))
            body = body.rpartition(".")[0]
            signature = base64.urlsafe_b64encode(hmac.digest(secret, body.encode(), hashed)).rstrip(b"=").decode()
            assert statuses(f"{body}.{signature}") == (401, 401)


@pytest.mark.parametrize(
    "algorithm", ["none", "None", "NONE", "nOnE", "", None, 0, [], ["RS256"], {"RS256": 1}], ids=str
)
def test_a_token_signed_by_nobody_is_refused(robot: NewAgent, algorithm: Any) -> None:
    good = issued(RSA, "r1").rpartition(".")[2]
    for signature in ("", good):
        assert statuses(raw(json.dumps({"alg": algorithm, "kid": "r1"}), json.dumps(said()), signature)) == (401, 401)


@pytest.mark.parametrize(
    ("algorithm", "key", "kid"),
    [
        ("RS384", RSA, "r1"),
        ("RS512", RSA, "r1"),
        ("PS256", RSA, "r1"),
        ("ES384", ec_key("longer", ec.SECP384R1), "e1"),
        ("RS256", RSA, "e1"),
        ("ES256", EC, "r1"),
        ("RS256", rsa_key("evil"), "r1"),
        ("ES256", ec_key("evil"), "e1"),
        ("RS256", RSA, "R1"),
        ("RS256", RSA, ""),
        ("RS256", RSA, "../../../dev/null"),
        ("RS256", RSA, "r1' OR '1'='1"),
    ],
    ids=lambda part: part if isinstance(part, str) else "key",
)
def test_a_key_checks_its_own_algorithm_under_its_own_name(
    robot: NewAgent,
    algorithm: str,
    key: PrivateKey,
    kid: str,
) -> None:
    assert statuses(jwt.encode(said(), key, algorithm=algorithm, headers={"kid": kid})) == (401, 401)


def test_the_signature_of_one_algorithm_is_not_taken_for_another(robot: NewAgent) -> None:
    """A header that lies about how its text was signed."""
    body = raw('{"alg":"RS256","kid":"r1"}', json.dumps(said())).rpartition(".")[0]
    signature = RSA.sign(body.encode(), padding.PSS(padding.MGF1(SHA256()), 32), SHA256())
    assert statuses(f"{body}.{jwt.utils.base64url_encode(signature).decode()}") == (401, 401)
    der = EC.sign(body.encode(), ec.ECDSA(SHA256()))
    for kid in ("r1", "e1"):
        body = raw(json.dumps({"alg": "ES256", "kid": kid}), json.dumps(said())).rpartition(".")[0]
        for forged in (der, bytes(64), b"\1" * 64):
            assert statuses(f"{body}.{jwt.utils.base64url_encode(forged).decode()}") == (401, 401)


@pytest.mark.parametrize(
    "headers",
    [
        {"crit": ["exp"], "exp": 1},
        {"crit": []},
        {"crit": ["b64"], "b64": True},
        {"b64": True},
        {"kid": 1},
        {"kid": ["r1"]},
        {"typ": "logout+jwt"},
        {"typ": "dpop+jwt"},
        {"typ": 1},
    ],
    ids=str,
)
def test_a_header_that_asks_for_more_than_we_know_is_refused(
    robot: NewAgent,
    headers: dict[str, Any],
) -> None:
    header = {"alg": "RS256", "typ": "JWT", "kid": "r1"} | headers
    assert statuses(signed_text(RSA, json.dumps(header), json.dumps(said()))) == (401, 401)


@pytest.mark.parametrize("kind", ["JWT", "at+jwt", "AT+JWT", "application/at+jwt"])
def test_an_access_token_may_say_that_it_is_one(robot: NewAgent, kind: str) -> None:
    assert authenticate(bearer(issued(RSA, "r1", headers={"typ": kind}))).name == "robot"


def test_a_token_cannot_bring_its_own_key_nor_say_where_one_lies(robot: NewAgent) -> None:
    evil = rsa_key("evil")
    brought: dict[str, Any] = {
        "jwk": jwk(evil, kid="r1"),
        "jku": "http://127.0.0.1:1/keys",
        "x5u": "http://127.0.0.1:1/certificate",
        "x5c": ["AAAA"],
    }
    assert statuses(issued(evil, "r1", headers=brought)) == (401, 401)
    assert authenticate(bearer(issued(RSA, "r1", headers=brought))).name == "robot"


@pytest.mark.parametrize(
    "header",
    [
        '{"alg":"RS256","kid":"r1","kid":"r1"}',
        '{"alg":"HS256","alg":"RS256","kid":"r1"}',
        '{"alg":"RS256","alg":"none","kid":"r1"}',
        '{"alg":"RS256","kid":"r1","x":NaN}',
        '{"alg":"RS256","kid":"r1","x":' + "[" * 2000 + "]" * 2000 + "}",
        "[]",
    ],
    ids=lambda text: text[:40],
)
def test_a_header_that_can_be_read_in_two_ways_is_refused_although_it_is_signed(robot: NewAgent, header: str) -> None:
    assert statuses(signed_text(RSA, header, json.dumps(said()))) == (401, 401)


@pytest.mark.parametrize(
    "more", ['"sub":"other"', '"sub":"robot"', '"exp":1', '"x":Infinity', '"x":1e999', '"x":' + "[" * 999]
)
def test_claims_that_can_be_read_in_two_ways_are_refused_although_they_are_signed(robot: NewAgent, more: str) -> None:
    payload = json.dumps(said())
    assert authenticate(bearer(signed_text(RSA, HEADER, payload))).name == "robot"
    assert statuses(signed_text(RSA, HEADER, "{" + more + "," + payload[1:])) == (401, 401)


@pytest.mark.parametrize("payload", ["[]", "null", "7", '"robot"', "", "{"])
def test_claims_that_are_no_object_are_refused(robot: NewAgent, payload: str) -> None:
    assert statuses(signed_text(RSA, HEADER, payload)) == (401, 401)


def test_a_huge_token_is_refused_before_it_is_read(robot: NewAgent) -> None:
    token = issued(RSA, "r1", filler="x" * MAX_TOKEN)
    before = time.process_time()
    with pytest.raises(NotAuthenticated, match="too long"):
        authenticate(bearer(token))
    assert time.process_time() - before < 0.05


@pytest.mark.parametrize(
    "change",
    [
        lambda token: token[:-1],
        lambda token: token + "=",
        lambda token: token + "!",
        lambda token: token.replace(".", "..", 1),
        lambda token: token.rpartition(".")[0] + ".",
        lambda token: "!" + token,
        lambda token: token[:-8] + "\ud800" + token[-7:],
    ],
)
def test_an_altered_token_is_refused(robot: NewAgent, change: Callable[[str], str]) -> None:
    with pytest.raises(NotAuthenticated):
        authenticate(bearer(change(issued(RSA, "r1"))))


def test_a_stranger_hears_the_same_whatever_is_wrong_with_an_unsigned_token(robot: NewAgent) -> None:
    evil = rsa_key("evil")
    forged = [
        issued(evil, "r1", **change) for change in ({}, {"sub": "nobody"}, {"iss": "x"}, {"exp": 1}, {"aud": "x"})
    ]
    told = {modern("tools/list", token).content for token in [*forged, issued(evil, "unknown"), issued(evil)]}
    assert len(told) == 1
