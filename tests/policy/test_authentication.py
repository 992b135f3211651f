"""A key or a JWT proves an agent; everything else is refused, at once and without a trace of the token."""

import base64
import hashlib
import hmac
import json
import time
from collections.abc import Callable
from datetime import timedelta
from typing import Any, NamedTuple

import jwt
import pytest
import time_machine
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from django.contrib.auth.models import User
from django.http import HttpHeaders
from django.utils import timezone

from policy import agents
from policy.agents import NewAgent
from policy.authentication import MAX_TOKEN, NotAuthenticated, authenticate
from policy.models import Credential


def bearer(token: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {token}"}


def claims(**changes: Any) -> dict[str, Any]:
    told = {"sub": "demo", "exp": int(time.time()) + 300} | changes
    return {name: value for name, value in told.items() if value is not ...}


def signed(made: NewAgent, **changes: Any) -> str:
    return jwt.encode(claims(**changes), made.jwt_secret, algorithm="HS256")


def raw(header: str, payload: str, signature: str = "") -> str:
    def part(text: str) -> str:
        return base64.urlsafe_b64encode(text.encode()).rstrip(b"=").decode()

    return f"{part(header)}.{part(payload)}.{signature}"


# Keys


def test_a_key_opens_the_door_in_either_header(made: NewAgent) -> None:
    by_bearer = authenticate(bearer(made.key))
    by_header = authenticate({"OXP-API-Key": made.key})
    assert by_bearer == by_header
    assert (by_bearer.name, by_bearer.user_id) == ("demo", made.agent.user_id)
    assert by_bearer.credential == f"key:{made.agent.credentials.get().prefix}"


def test_header_names_and_the_scheme_are_read_without_regard_to_case(made: NewAgent) -> None:
    assert authenticate(HttpHeaders({"HTTP_AUTHORIZATION": f"bEaReR   {made.key} "})).name == "demo"
    assert authenticate(HttpHeaders({"HTTP_OXP_API_KEY": made.key})).name == "demo"


@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"Authorization": ""},
        {"Authorization": "Bearer"},
        {"Authorization": "Bearer "},
        {"Authorization": "Basic ZGVtbzpkZW1v"},
        {"Authorization": "Digest x"},
        {"OXP-API-Key": ""},
        {"Cookie": "key=KEY"},
    ],
)
def test_nothing_or_another_scheme_is_refused_with_what_to_send(made: NewAgent, headers: dict[str, str]) -> None:
    with pytest.raises(NotAuthenticated, match="OXP-API-Key"):
        authenticate(headers)


@pytest.mark.parametrize(
    "change",
    [
        lambda key: key[:-1],
        lambda key: key + "x",
        lambda key: key.swapcase(),
        lambda key: key.replace("plc_", "abc_"),
        lambda key: key.rpartition("_")[2],
        lambda key: "plc__" + key.rpartition("_")[2],
        lambda key: f"{key}' OR '1'='1",
        lambda key: "plc_' OR 1=1 --_x",
        lambda key: "plc_%_x",
        lambda key: "plc_\0_x",
        lambda key: "plc_\ud800_x",
        lambda key: "plc_ٱ_x",
        lambda key: "plc_" + "a" * 17 + "_x",
        lambda key: "x" * (MAX_TOKEN + 1),
        lambda key: "_",
        lambda key: "{{7*7}}",
    ],
)
def test_a_wrong_key_is_refused_without_an_error_of_the_database(made: NewAgent, change: Callable[[str], str]) -> None:
    with pytest.raises(NotAuthenticated) as refusal:
        authenticate(bearer(change(made.key)))
    assert made.key.rpartition("_")[2] not in str(refusal.value)


def test_a_right_prefix_and_a_wrong_prefix_are_refused_in_the_same_words(made: NewAgent) -> None:
    prefix = made.agent.credentials.get().prefix
    refusals = set()
    for guess in (f"plc_{prefix}_guess", "plc_0123456789_guess", "guess"):
        with pytest.raises(NotAuthenticated) as refusal:
            authenticate(bearer(guess))
        refusals.add(str(refusal.value))
    assert len(refusals) == 1


def test_the_hash_is_compared_in_constant_time_also_for_an_unknown_prefix(
    made: NewAgent, monkeypatch: pytest.MonkeyPatch
) -> None:
    compared: list[tuple[str, str]] = []

    def compare(given: str, expected: str) -> bool:
        compared.append((given, expected))
        return False

    monkeypatch.setattr("policy.authentication.hmac.compare_digest", compare)
    for guess in (f"plc_{made.agent.credentials.get().prefix}_guess", "plc_0123456789_guess", "no form at all"):
        with pytest.raises(NotAuthenticated):
            authenticate(bearer(guess))
    assert [(len(given), len(expected)) for given, expected in compared] == [(64, 64)] * 3


def test_a_revoked_key_is_refused_at_once_although_it_was_remembered(made: NewAgent) -> None:
    authenticate(bearer(made.key))
    authenticate(bearer(made.key))
    agents.revoke_key(made.agent.credentials.get(), actor="shell")
    with pytest.raises(NotAuthenticated, match="revoked"):
        authenticate(bearer(made.key))


def test_revoking_one_key_leaves_the_other(made: NewAgent) -> None:
    second = agents.new_key(made.agent, actor="shell")
    agents.revoke_key(made.agent.credentials.get(hash=agents.hash_of(made.key)), actor="shell")
    assert authenticate(bearer(second)).name == "demo"


@pytest.mark.parametrize("kind", ["key", "jwt"])
def test_a_disabled_agent_is_refused_at_once_and_comes_back_when_enabled(made: NewAgent, kind: str) -> None:
    token = made.key if kind == "key" else signed(made)
    authenticate(bearer(token))
    agents.set_active(made.agent, False, actor="shell")
    with pytest.raises(NotAuthenticated):
        authenticate(bearer(token))
    agents.set_active(made.agent, True, actor="shell")
    assert authenticate(bearer(token)).name == "demo"


@pytest.mark.parametrize("kind", ["key", "jwt"])
def test_an_agent_whose_user_was_disabled_is_refused_at_once(made: NewAgent, kind: str) -> None:
    token = made.key if kind == "key" else signed(made)
    authenticate(bearer(token))
    User.objects.filter(pk=made.agent.user_id).update(is_active=False)
    with pytest.raises(NotAuthenticated):
        authenticate(bearer(token))


def test_an_expired_key_is_refused(made: NewAgent) -> None:
    key = agents.new_key(made.agent, actor="shell", expires_at=timezone.now() + timedelta(seconds=60))
    assert authenticate(bearer(key)).name == "demo"
    Credential.objects.filter(hash=agents.hash_of(key)).update(expires_at=timezone.now() - timedelta(seconds=1))
    with pytest.raises(NotAuthenticated, match="expired"):
        authenticate(bearer(key))


def test_a_remembered_key_stops_at_its_expiry_without_any_change(
    made: NewAgent, monkeypatch: pytest.MonkeyPatch
) -> None:
    key = agents.new_key(made.agent, actor="shell", expires_at=timezone.now() + timedelta(seconds=0.3))
    assert authenticate(bearer(key)).name == "demo"
    time.sleep(0.5)
    with pytest.raises(NotAuthenticated):
        authenticate(bearer(key))


def test_a_proof_is_remembered_until_something_changes(
    made: NewAgent, django_assert_num_queries: Callable[..., Any]
) -> None:
    authenticate(bearer(made.key))
    with django_assert_num_queries(0):  # the glance at the revision does not count
        authenticate(bearer(made.key))


def test_a_proof_from_before_a_change_is_not_remembered_after_it(
    made: NewAgent, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The key is revoked, and another request moves the cache on, between our look-up and our remembering."""
    from policy import authentication

    look_up = authentication._by_key
    other = agents.new_key(made.agent, actor="shell")

    def slow(key: str) -> Any:
        found = look_up(key)
        if key == made.key:
            agents.revoke_key(made.agent.credentials.get(hash=agents.hash_of(key)), actor="shell")
            authenticate(bearer(other))
        return found

    monkeypatch.setattr(authentication, "_by_key", slow)
    authenticate(bearer(made.key))
    with pytest.raises(NotAuthenticated):
        authenticate(bearer(made.key))


# Nobody


def test_without_credentials_the_anonymous_agent_acts_if_there_is_one(made: NewAgent, settings: Any) -> None:
    settings.PLACET_ANONYMOUS_AGENT = "demo"
    assert authenticate({}).credential == "anonymous"


@pytest.mark.parametrize("headers", [bearer("wrong"), {"Authorization": "Bearer "}, {"OXP-API-Key": "wrong"}])
def test_a_bad_credential_never_falls_back_to_the_anonymous_agent(
    made: NewAgent, settings: Any, headers: dict[str, str]
) -> None:
    settings.PLACET_ANONYMOUS_AGENT = "demo"
    with pytest.raises(NotAuthenticated):
        authenticate(headers)


def test_a_disabled_anonymous_agent_is_nobody(made: NewAgent, settings: Any) -> None:
    settings.PLACET_ANONYMOUS_AGENT = "demo"
    agents.set_active(made.agent, False, actor="shell")
    with pytest.raises(NotAuthenticated):
        authenticate({})


# JSON Web Tokens


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
