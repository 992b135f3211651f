"""The keys of an authorization server: which are taken, from where, and what happens when they cannot be had."""

from __future__ import annotations

import json
import logging
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric import ec
from django.core.checks import run_checks
from django.core.exceptions import ImproperlyConfigured
from jwt.algorithms import ECAlgorithm, RSAAlgorithm

from config import env
from execution.keyfetching import fetch
from policy import keyset, keysets
from policy.agents import NewAgent
from policy.keyset import BadKeySet
from policy.keysets import FetchedSet, FileSet
from tests.execution.secretkit import Loopback
from tests.mcp.wire import modern, send
from tests.policy.issuer import CALL, EC, ISSUER, RSA, ec_key, issued, jwk, key_set, rsa_key

NEW = rsa_key("second")
ONE = key_set(jwk(RSA, kid="r1"))
TWO = key_set(jwk(RSA, kid="r1"), jwk(NEW, kid="r2"))


class Issuer(Loopback):
    """A server that shows a key set, or whatever a test lets it say, and can be slow."""

    def __init__(self) -> None:
        self.says: tuple[int, Any] = (200, ONE)
        self.may_answer = threading.Event()
        self.may_answer.set()
        super().__init__(lambda request, body: self._answer())

    def _answer(self) -> tuple[int, Any]:
        self.may_answer.wait(10)
        return self.says


@pytest.fixture
def issuer(settings: Any, monkeypatch: pytest.MonkeyPatch) -> Iterator[Issuer]:
    settings.PLACET_EGRESS_ALLOW = ["127.0.0.0/8"]
    settings.PLACET_JWT_ISSUERS = [ISSUER]
    monkeypatch.setattr(keysets, "_source", None)
    with Issuer() as server:
        settings.PLACET_JWKS = f"{server.url}/keys"
        yield server
        server.may_answer.set()


def names(found: keyset.KeySet | None) -> set[str | None]:
    return set() if found is None else {name for keys in found.keys.values() for name in keys}


# Which keys are taken


@pytest.mark.parametrize(
    "other",
    [
        jwk(NEW, kid="x", use="enc"),
        jwk(NEW, kid="x", alg="RS512"),
        jwk(NEW, kid="x", alg="RSA-OAEP"),
        jwk(NEW, kid="x", alg="HS256"),
        jwk(NEW, kid="x", alg=None),
        jwk(NEW, kid="x", key_ops=["encrypt"]),
        jwk(NEW, kid="x", key_ops="verify"),
        jwk(NEW, kid="x", e=...),
        jwk(NEW, kid="x", n=7),
        jwk(NEW, kid="x", n=""),
        jwk(NEW, kid="x", kty=["RSA"]),
        jwk(NEW, kid="x", kty="EC"),
        jwk(rsa_key("weak", 1024), kid="x"),
        jwk(ec_key("longer", ec.SECP384R1), kid="x"),
        jwk(ec_key("coin", ec.SECP256K1), kid="x"),
        jwk(EC, kid="x", y=jwk(EC)["x"]),
        jwk(EC, kid="x", x="AAAA"),
        {"kty": "oct", "k": "c2VjcmV0", "kid": "x", "alg": "HS256"},
        {"kty": "OKP", "crv": "Ed25519", "x": "AAAA", "kid": "x"},
        {},
    ],
    ids=lambda _: "key",  # what it looks like differs by process
)
def test_a_key_that_is_weak_or_made_for_something_else_is_left_out(other: dict[str, Any]) -> None:
    assert names(keyset.read(key_set(other, jwk(RSA, kid="r1")))) == {"r1"}
    with pytest.raises(BadKeySet, match="no key for RS256"):
        keyset.read(key_set(other))


@pytest.mark.parametrize(
    "text",
    [
        b"",
        b"[]",
        b"{}",
        b'{"keys":{}}',
        b'{"keys":[1]}',
        b'{"keys":[],"keys":[]}',
        b'{"keys":' + b"[" * 1000,
        b"\xff",
        b"<html>",
        b" " * (keyset.MAX_BYTES + 1),
        key_set(*[{}] * (keyset.MAX_KEYS + 1)),
        key_set(jwk(RSA), jwk(NEW)),
        key_set(jwk(RSA, kid="a"), jwk(NEW, kid="a")),
        key_set(jwk(RSA, kid=1)),
        key_set(jwk(RSA), json.loads(RSAAlgorithm.to_jwk(NEW))),
        key_set(jwk(RSA), json.loads(ECAlgorithm.to_jwk(EC))),
    ],
    ids=lambda _: "text",
)
def test_what_is_no_set_of_public_keys_with_names_is_refused(text: bytes) -> None:
    with pytest.raises(BadKeySet):
        keyset.read(text)


def test_keys_of_different_kinds_may_have_one_name() -> None:
    found = keyset.read(key_set(jwk(RSA, kid="a"), jwk(EC, kid="a")))
    assert found.find("RS256", "a") != found.find("ES256", "a")
    assert found.find("HS256", "a") is None


# From a file


def test_a_file_is_read_once_and_again_when_it_changes_also_behind_a_link(tmp_path: Path) -> None:
    (tmp_path / "one").write_bytes(ONE)
    (tmp_path / "two").write_bytes(TWO)
    link = tmp_path / "jwks.json"
    link.symlink_to("one")
    kept = FileSet(link)
    first = kept.current()
    assert first is kept.current() is kept.renewed()
    (tmp_path / "next").symlink_to("two")
    (tmp_path / "next").rename(link)
    assert names(kept.current()) == {"r1", "r2"}


def test_a_file_that_goes_bad_leaves_the_last_good_set_and_one_line_in_the_log(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "jwks.json"
    kept = FileSet(path)
    assert kept.current() is None
    assert "no token of an issuer can be checked" in caplog.text
    path.write_bytes(ONE)
    good = kept.current()
    caplog.clear()
    path.write_bytes(ONE[:-9])
    assert kept.current() is kept.current() is good
    path.unlink()
    assert kept.current() is good
    assert [record.levelno for record in caplog.records] == [logging.ERROR] * 2
    assert "the last good one stays in force" in caplog.text
    path.write_bytes(TWO)
    assert names(kept.current()) == {"r1", "r2"}


# From the web


@pytest.mark.django_db
def test_keys_are_fetched_once_and_again_for_a_name_that_is_new(
    robot: NewAgent, hands: Any, issuer: Issuer, monkeypatch: pytest.MonkeyPatch
) -> None:
    old, new = issued(RSA, "r1"), issued(NEW, "r2")
    for _ in range(3):
        assert send(CALL, old, path="/tools/call").status_code == 200
        assert modern("tools/list", old).status_code == 200
    ((path, headers, _),) = issuer.asked
    assert (path, headers["accept"]) == ("/keys", "application/jwk-set+json, application/json")
    issuer.says = 200, TWO
    assert modern("tools/list", new).status_code == 401  # the last fetch was a moment ago
    assert len(issuer.asked) == 1
    monkeypatch.setattr(keysets, "PAUSE", 0)
    assert modern("tools/list", new).status_code == 200
    assert send(CALL, new, path="/tools/call").status_code == 200
    assert len(issuer.asked) == 2
    issuer.says = 200, key_set(jwk(NEW, kid="r2"))
    assert modern("tools/list", issued(RSA, "r9")).status_code == 401
    assert (modern("tools/list", old).status_code, modern("tools/list", new).status_code) == (401, 200)


def test_an_old_set_is_renewed_while_nobody_waits(issuer: Issuer, monkeypatch: pytest.MonkeyPatch) -> None:
    kept = FetchedSet(f"{issuer.url}/keys")
    assert names(kept.renewed()) == {"r1"}
    monkeypatch.setattr(keysets, "PAUSE", 0)
    monkeypatch.setattr(keysets, "FRESH", 0)
    issuer.says = 200, TWO
    issuer.may_answer.clear()
    before = time.monotonic()
    assert [names(kept.current()) for _ in range(5)] == [{"r1"}] * 5
    assert time.monotonic() - before < 1
    assert len(issuer.asked) <= 2
    issuer.may_answer.set()
    while names(kept.current()) != {"r1", "r2"}:
        assert time.monotonic() - before < 5
        time.sleep(0.01)


def test_the_same_text_is_the_same_set(issuer: Issuer, monkeypatch: pytest.MonkeyPatch) -> None:
    kept = FetchedSet(f"{issuer.url}/keys")
    first = kept.renewed()
    monkeypatch.setattr(keysets, "PAUSE", 0)
    assert kept.renewed() is first
    assert len(issuer.asked) == 2


@pytest.mark.parametrize(
    "answer", [(500, ONE), (404, ONE), (204, b""), (302, b""), (200, b"{}"), (200, b" " * 300_000)], ids=lambda a: a[0]
)
def test_a_fetch_that_fails_leaves_the_last_good_set(
    issuer: Issuer, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, answer: tuple[int, bytes]
) -> None:
    kept = FetchedSet(f"{issuer.url}/keys")
    good = kept.renewed()
    monkeypatch.setattr(keysets, "PAUSE", 0)
    issuer.says = answer
    assert kept.renewed() is good
    assert "the last good one stays in force" in caplog.text
    assert issuer.url not in caplog.text
    issuer.says = 200, TWO
    assert names(kept.renewed()) == {"r1", "r2"}


def test_after_a_failure_nobody_asks_again_at_once(issuer: Issuer, caplog: pytest.LogCaptureFixture) -> None:
    issuer.says = 500, b""
    kept = FetchedSet(f"{issuer.url}/keys")
    assert [kept.renewed() for _ in range(5)] == [None] * 5
    assert (len(issuer.asked), len(caplog.records)) == (1, 1)


@pytest.mark.django_db
def test_many_at_once_are_served_by_one_fetch_and_few_of_them_wait(
    issuer: Issuer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(keysets, "MAX_WAITING", 3)
    kept = FetchedSet(f"{issuer.url}/keys")
    issuer.may_answer.clear()
    with ThreadPoolExecutor(12) as pool:
        asked = [pool.submit(kept.renewed) for _ in range(12)]
        until = time.monotonic() + 5
        while sum(each.done() for each in asked) < 9 and time.monotonic() < until:
            time.sleep(0.01)
        assert sum(each.done() for each in asked) == 9
        issuer.may_answer.set()
        found = [names(each.result(5)) for each in asked]
    assert (found.count({"r1"}), len(issuer.asked)) == (3, 1)


@pytest.mark.django_db
def test_a_server_that_never_answers_holds_a_request_for_a_bounded_time(
    robot: NewAgent, issuer: Issuer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(keysets, "TIMEOUT", 0.3)
    issuer.may_answer.clear()
    before = time.monotonic()
    for _ in range(5):
        assert modern("tools/list", issued(RSA, "r1")).status_code == 401
    assert time.monotonic() - before < 2
    assert modern("tools/list", robot).status_code == 200


def test_nobody_waits_longer_than_a_fetch_may_take_even_if_it_takes_longer(monkeypatch: pytest.MonkeyPatch) -> None:
    is_over = threading.Event()

    def stalled(address: str, within: float) -> bytes:
        is_over.wait(10)
        return ONE

    monkeypatch.setattr(keysets, "_ways", [stalled])
    monkeypatch.setattr(keysets, "TIMEOUT", 0.1)
    kept = FetchedSet("https://login.example/keys")
    before = time.monotonic()
    assert [kept.renewed() for _ in range(20)] == [None] * 20
    assert time.monotonic() - before < 1
    is_over.set()


def test_keys_are_fetched_only_from_where_we_may_go(issuer: Issuer, settings: Any) -> None:
    settings.PLACET_EGRESS_ALLOW = []
    with pytest.raises(keysets.Unfetched, match="PLACET_EGRESS_ALLOW"):
        fetch(f"{issuer.url}/keys", 1)
    assert issuer.asked == []


# At start


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("", ""),
        ("https://login.example/keys?v=1", "https://login.example/keys?v=1"),
        ("http://127.0.0.1:9000/keys", "http://127.0.0.1:9000/keys"),
        ("/etc/placet/jwks.json", "/etc/placet/jwks.json"),
        ("jwks.json", str(Path.cwd() / "jwks.json")),
    ],
)
def test_a_set_is_named_by_its_address_or_its_path(monkeypatch: pytest.MonkeyPatch, value: str, expected: str) -> None:
    monkeypatch.setenv("PLACET_JWKS", value)
    assert env.keyset("PLACET_JWKS") == expected


@pytest.mark.parametrize(
    "value", ["http://login.example/keys", "ftp://x/y", "file:///etc/x", "https://", "https://u:p@x/", "https://x/#y"]
)
def test_an_address_where_keys_could_be_altered_is_found_at_start(monkeypatch: pytest.MonkeyPatch, value: str) -> None:
    monkeypatch.setenv("PLACET_JWKS", value)
    with pytest.raises(ImproperlyConfigured, match="PLACET_JWKS"):
        env.keyset("PLACET_JWKS")


def wrong() -> list[str | None]:
    return [found.id for found in run_checks() if (found.id or "").startswith("policy.")]


def test_keys_without_issuers_and_issuers_without_keys_are_found_at_start(settings: Any, tmp_path: Path) -> None:
    path = tmp_path / "jwks.json"
    path.write_bytes(ONE)
    settings.PLACET_JWKS, settings.PLACET_JWT_ISSUERS = str(path), []
    assert wrong() == ["policy.E002"]
    settings.PLACET_JWT_ISSUERS = [ISSUER]
    assert wrong() == []
    settings.PLACET_JWKS = ""
    assert wrong() == ["policy.W001"]


@pytest.mark.parametrize("text", [None, b"", b'{"keys":[]}'])
def test_a_file_that_cannot_be_used_is_found_at_start(settings: Any, tmp_path: Path, text: bytes | None) -> None:
    path = tmp_path / "jwks.json"
    if text is not None:
        path.write_bytes(text)
    settings.PLACET_JWKS, settings.PLACET_JWT_ISSUERS = str(path), [ISSUER]
    assert wrong() == ["policy.E003"]
