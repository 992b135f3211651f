"""JSON Web Tokens: signed with the agent's own secret, and nothing else opens the door."""

import base64
import hashlib
import hmac
import json
import time
from datetime import timedelta
from typing import Any, NamedTuple

import jwt
import pytest
import time_machine
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from django.utils import timezone

from policy import agents
from policy.agents import NewAgent
from policy.authentication import NotAuthenticated, authenticate
from tests.policy.tokens import bearer, claims, raw, signed


def test_a_jwt_signed_with_the_agents_secret_opens_the_door(made: NewAgent) -> None:
    caller = authenticate(bearer(signed(made)))
    assert (caller.name, caller.credential) == ("demo", "jwt")


@pytest.mark.parametrize("audience", ["placet", ["placet"], ["other", "placet"]])
def test_an_audience_that_names_us_is_accepted(made: NewAgent, audience: Any) -> None:
    assert authenticate(bearer(signed(made, aud=audience))).name == "demo"


class In(NamedTuple):
    """A moment so many seconds from when the test runs, not from when it was collected."""

    seconds: int
    as_type: type = int

    def seconds_since_1970(self) -> Any:
        return self.as_type(int(time.time()) + self.seconds)


@pytest.mark.parametrize(
    "change",
    [
        {"exp": In(-60)},
        {"exp": ...},
        {"exp": None},
        {"exp": "soon"},
        {"exp": True},
        {"exp": {}},
        {"exp": []},
        {"exp": In(3600, str)},
        {"exp": In(3600)},
        {"exp": 10**400},
        {"exp": float("inf")},
        {"exp": float("nan")},
        {"nbf": In(120)},
        {"nbf": float("inf")},
        {"nbf": "later"},
        {"iat": In(120)},
        {"iat": "never"},
        {"aud": "other"},
        {"aud": ["other"]},
        {"aud": []},
        {"aud": None},
        {"aud": {"placet": 1}},
        {"aud": "placet.evil"},
        {"sub": ...},
        {"sub": None},
        {"sub": 7},
        {"sub": ["demo"]},
        {"sub": "nobody"},
        {"sub": "Demo"},
        {"sub": "demo\0"},
        {"sub": "demo\n"},
        {"sub": "\ud800"},
        {"sub": "' OR 1=1 --"},
        {"sub": "agent:demo"},
    ],
    ids=str,
)
def test_a_jwt_with_wrong_claims_is_refused(made: NewAgent, change: dict[str, Any]) -> None:
    now = {name: value.seconds_since_1970() if isinstance(value, In) else value for name, value in change.items()}
    payload = json.dumps(claims(**now)).encode("utf-8", "surrogatepass")
    token = jwt.api_jws.encode(payload, made.jwt_secret, algorithm="HS256")
    with pytest.raises(NotAuthenticated):
        authenticate(bearer(token))


@pytest.mark.parametrize(
    "algorithm", ["none", "None", "NONE", "nOnE", "HS384", "HS512", "RS256", "ES256", "", None, 1, []]
)
def test_a_jwt_of_another_algorithm_is_refused(made: NewAgent, algorithm: Any) -> None:
    good = signed(made)
    for signature in ("", good.rpartition(".")[2]):
        token = raw(json.dumps({"alg": algorithm, "typ": "JWT"}), json.dumps(claims()), signature)
        with pytest.raises(NotAuthenticated):
            authenticate(bearer(token))


@pytest.mark.parametrize("algorithm", ["HS384", "HS512"])
def test_a_jwt_signed_by_a_longer_hash_is_refused(made: NewAgent, algorithm: str) -> None:
    token = jwt.encode(claims(), made.jwt_secret.ljust(64, "="), algorithm=algorithm)
    with pytest.raises(NotAuthenticated):
        authenticate(bearer(token))


def test_a_jwt_signed_with_a_public_key_as_secret_is_refused(made: NewAgent) -> None:
    for key in (
        rsa.generate_private_key(public_exponent=65537, key_size=2048),
        ec.generate_private_key(ec.SECP256R1()),
    ):
        public = key.public_key().public_bytes(
            serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
        )
        body = raw(json.dumps({"alg": "HS256", "typ": "JWT"}), json.dumps(claims())).rpartition(".")[0]
        signature = base64.urlsafe_b64encode(hmac.digest(public, body.encode(), hashlib.sha256)).rstrip(b"=").decode()
        with pytest.raises(NotAuthenticated):
            authenticate(bearer(f"{body}.{signature}"))


def test_a_jwt_cannot_bring_its_own_key(made: NewAgent) -> None:
    own = "an attacker's own secret, long enough to sign with"
    jwk = {"kty": "oct", "k": base64.urlsafe_b64encode(own.encode()).decode()}
    headers = {"jwk": jwk, "jku": "http://127.0.0.1:1/keys", "x5u": "http://127.0.0.1:1/cert", "kid": "../../dev/null"}
    with pytest.raises(NotAuthenticated):
        authenticate(bearer(jwt.encode(claims(), own, algorithm="HS256", headers=headers)))


def test_a_jwt_of_one_agent_does_not_speak_for_another(made: NewAgent) -> None:
    other = agents.create("other", actor="shell")
    token = jwt.encode(claims(sub="other"), made.jwt_secret, algorithm="HS256")
    with pytest.raises(NotAuthenticated):
        authenticate(bearer(token))
    assert authenticate(bearer(jwt.encode(claims(sub="other"), other.jwt_secret, algorithm="HS256"))).name == "other"


@pytest.mark.parametrize("secret", ["", " ", "secret", "None", "null"])
def test_a_jwt_signed_with_a_guess_is_refused(made: NewAgent, secret: str) -> None:
    body = raw(json.dumps({"alg": "HS256"}), json.dumps(claims())).rpartition(".")[0]
    signature = base64.urlsafe_b64encode(hmac.digest(secret.encode(), body.encode(), hashlib.sha256)).rstrip(b"=")
    with pytest.raises(NotAuthenticated):
        authenticate(bearer(f"{body}.{signature.decode()}"))


@pytest.mark.parametrize(
    "token",
    [
        "..",
        "a.b.c",
        raw("[]", "[]"),
        raw("{}", "{}"),
        raw('{"alg":"HS256"}', "[" * 2000 + "]" * 2000),
        raw('{"alg":"HS256","zip":"DEF"}', "x" * 3000),
        raw('{"alg":"HS256","crit":["exp"]}', '{"sub":"demo"}'),
        "e" * 100_000 + ".e.e",
        raw('{"alg":"HS256"}', '{"sub":"demo","exp":Infinity}', "AA"),
    ],
    ids=lambda token: token[:30],
)
def test_a_malformed_or_huge_jwt_is_refused_fast(made: NewAgent, token: str) -> None:
    before = time.process_time()
    with pytest.raises(NotAuthenticated):
        authenticate(bearer(token))
    assert time.process_time() - before < 0.5


def test_a_jwt_is_refused_once_it_has_expired_although_it_was_remembered(made: NewAgent) -> None:
    token = signed(made)
    assert authenticate(bearer(token)).name == "demo"
    with time_machine.travel(timezone.now() + timedelta(seconds=320)), pytest.raises(NotAuthenticated):
        authenticate(bearer(token))


def test_a_jwt_secret_that_cannot_be_opened_refuses_and_tells_the_log(
    made: NewAgent, settings: Any, caplog: pytest.LogCaptureFixture
) -> None:
    settings.PLACET_SEALING_KEYS = {"new": b"n" * 32}
    with pytest.raises(NotAuthenticated, match="use a key"):
        authenticate(bearer(signed(made)))
    assert "cannot be opened" in caplog.text
