"""No secret survives redaction, in any spelling; nothing else is touched."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from audit.redaction import Redactor
from tests.audit.spellings import SECRETS, B, spellings

CELLS = [(ref, name) for ref, secret in SECRETS.items() for name, _ in spellings(secret)]


@pytest.mark.parametrize(("ref", "name"), CELLS, ids=lambda part: str(part))
def test_a_known_secret_is_found_in_every_spelling(ref: str, name: str) -> None:
    secret = SECRETS[ref]
    spelled = dict(spellings(secret))[name]
    redactor = Redactor({ref: secret, "other": "another-secret-value"})
    for value in (spelled, {"a": [1, {"b": f"before {spelled} after"}]}, {spelled: "in a key"}, [spelled]):
        for shown in (redactor.for_caller(value), redactor.for_people(value)):
            text = json.dumps(shown, ensure_ascii=False)
            assert f"[REDACTED:{ref}:" in text
            assert spelled not in text
            assert json.dumps(spelled)[1:-1] not in text
            assert type(shown) is type(value)


@pytest.mark.parametrize("ref", SECRETS)
def test_a_secret_split_over_several_texts_masks_all_of_them(ref: str) -> None:
    secret = SECRETS[ref]
    redactor = Redactor({ref: secret})
    half = len(secret) // 2
    for value in (
        [secret[:half], secret[half:]],
        {"a": secret[:half], "b": {"c": secret[half:]}},
        {"a": "say: " + secret[:2], "n": None, "b": [secret[2:half], True, secret[half:]], "ok": "untouched"},
    ):
        shown = redactor.for_caller(value)
        text = json.dumps(shown, ensure_ascii=False)
        for part in (secret[:half], secret[half:], secret[2:half]):
            assert part not in text or len(part) < 4
        assert "[REDACTED:" in text
    assert shown["ok"] == "untouched"
    assert shown["n"] is None


def test_a_secret_of_digits_is_found_as_a_number_too() -> None:
    redactor = Redactor({"pin": "8837261905"})
    shown = redactor.for_caller({"n": 8837261905, "m": 12, "deep": [18837261905.5]})
    assert "8837261905" not in json.dumps(shown)
    assert shown["m"] == 12


def test_a_very_short_secret_is_masked_where_it_stands_alone() -> None:
    redactor = Redactor({"short": "ab"})
    assert redactor.for_caller(["ab", "abacus"])[1] == "abacus"
    assert redactor.for_caller(["ab", "abacus"])[0].startswith("[REDACTED:short:")


def test_the_same_value_has_the_same_mark_and_another_key_another(settings: Any) -> None:
    redactor = Redactor({"a": SECRETS["plain"]})
    shown = redactor.for_caller([SECRETS["plain"], f"x {SECRETS['plain']} y"])
    assert shown[1] == f"x {shown[0]} y"
    assert len(shown[0]) == len("[REDACTED:a:]") + 12
    settings.PLACET_AUDIT_KEY = b"b" * 32
    assert Redactor({"a": SECRETS["plain"]}).for_caller(SECRETS["plain"]) != shown[0]


@given(st.text(min_size=8, max_size=30).filter(lambda t: t.strip() == t and len(set(t)) > 3), st.text(), st.text())
def test_any_secret_is_found_between_any_texts(secret: str, before: str, after: str) -> None:
    shown = Redactor({"s": secret}).for_caller({"x": before + secret + after})
    assert secret not in shown["x"]
    assert Redactor({"s": secret}).for_caller(shown) == shown


KEYS = [
    "password", "Password", "PASSWD", "pwd", "db_password", "client_secret", "clientSecret", "token", "access-token",
    "accessToken", "refresh_token", "api_key", "apiKey", "API-KEY", "X-Api-Key", "Authorization", "Proxy-Authorization",
    "auth", "credentials", "Cookie", "Set-Cookie", "session", "session_id", "bearer", "private_key", "privateKey",
    "signature", "X-Signature", "otp", "user_otp", "pin", "userPin", "PIN_CODE", "ssn", "cvv", "card_cvv2",
]  # fmt: skip
BENIGN_KEYS = [
    "author", "authors", "authority", "shipping", "mapping", "opinion", "spinner", "footprint", "className", "keyboard",
    "monkey", "key", "name", "primary_key", "compass", "passenger", "hotplug", "notpresent", "tokio", "pinned",
]  # fmt: skip


@pytest.mark.parametrize("key", KEYS)
def test_a_value_under_a_sensitive_key_is_masked_at_any_depth(key: str) -> None:
    for value in ("hunter2", 1234, ["a", "b"], {"user": "ada"}):
        shown = Redactor().for_people({"outer": [{key: value, "kept": 1}]})
        assert shown["outer"][0][key].startswith("[REDACTED:key:")
        assert shown["outer"][0]["kept"] == 1


@pytest.mark.parametrize("key", BENIGN_KEYS)
def test_an_ordinary_key_hides_nothing(key: str) -> None:
    assert Redactor().for_people({key: "some text"}) == {key: "some text"}


def test_what_a_sensitive_key_cannot_hide_stays() -> None:
    value = {"has_password": True, "token": None, "secret": "", "max_tokens": 4096, "usage": {"total_tokens": 12}}
    assert Redactor().for_people(value) == value


def test_the_caller_gets_its_own_data_back() -> None:
    value = {"password": "hunter2", "card": "4111 1111 1111 1111"}
    assert Redactor({"s": SECRETS["plain"]}).for_caller(value) == value
    assert Redactor().for_caller(value) is value


SCHEMA = {
    "type": "object",
    "properties": {
        "note": {"type": "string", "writeOnly": True},
        "code": {"type": "string", "format": "password"},
        "blob": {"x-secret": True},
        "token": {"type": "string", "x-audit": "plain"},
        "list": {"type": "array", "items": {"properties": {"inner": {"x-secret": True}, "pin": {"x-audit": "plain"}}}},
        "pair": {"prefixItems": [{}, {"x-secret": True}]},
        "either": {"anyOf": [{"type": "number"}, {"type": "string", "writeOnly": True}]},
        "all": {"allOf": [{"$ref": "#/$defs/hidden"}]},
        "tree": {"$ref": "#/$defs/tree"},
        "plain": {"type": "string"},
    },
    "additionalProperties": {"x-secret": True},
    "$defs": {
        "hidden": {"x-secret": True},
        "tree": {"properties": {"leaf": {"x-secret": True}, "below": {"$ref": "#/$defs/tree"}}},
    },
}


def test_schema_marks_mask_and_lift() -> None:
    value = {
        "note": "a", "code": "b", "blob": {"x": 1}, "token": "shown", "list": [{"inner": "c", "pin": "shown"}],
        "pair": ["shown", "d"], "either": "e", "all": "f", "tree": {"below": {"below": {"leaf": "g"}}},
        "plain": "shown", "unknown": "h",
    }  # fmt: skip
    shown = Redactor().for_people(value, SCHEMA)
    masked = [shown[key] for key in ("note", "code", "blob", "either", "all", "unknown")]
    masked += [shown["list"][0]["inner"], shown["pair"][1], shown["tree"]["below"]["below"]["leaf"]]
    assert all(text.startswith("[REDACTED:schema:") for text in masked), shown
    assert (shown["token"], shown["plain"], shown["pair"][0], shown["list"][0]["pin"]) == ("shown",) * 4


def test_a_plain_mark_does_not_lift_the_other_rules() -> None:
    shown = Redactor({"s": SECRETS["plain"]}).for_people({"token": SECRETS["plain"], "x": 1}, SCHEMA)
    assert shown["token"].startswith("[REDACTED:s:")


@pytest.mark.parametrize(
    "schema",
    [
        {"$ref": "#", "x-secret": False},
        {"x-secret": 1, "allOf": [{"$ref": "#"}]},
        {"x-audit": 3, "items": 7, "properties": [], "$ref": "#/a/0/b"},
    ],
)
def test_an_odd_schema_does_no_harm(schema: dict[str, Any]) -> None:
    assert Redactor().for_people({"a": [1, "two"]}, schema) == {"a": [1, "two"]}


URLS = {
    "https://ada:hunter2@example.com/x": "https://[]@example.com/x",
    "see postgres://app:pw@db:5432/app now": "see postgres://[]@db:5432/app now",
    "https://TOKEN@example.com/": "https://[]@example.com/",
    "https://example.com/a?page=2&access_token=abc&x=1#frag": "https://example.com/a?page=2&access_token=[]&x=1#frag",
    "/cb?code=1&%74oken=abc": "/cb?code=1&%74oken=[]",
    "ssh://git@example.com/repo": "ssh://git@example.com/repo",
    "https://example.com/a?page=2&sort=name": "https://example.com/a?page=2&sort=name",
    "mail ada@example.com about http://example.com": "mail ada@example.com about http://example.com",
}


@pytest.mark.parametrize(("text", "expected"), URLS.items())
def test_urls_lose_their_credentials_only(text: str, expected: str) -> None:
    import re

    assert re.sub(r"\[REDACTED:url:[0-9a-f]{12}\]", "[]", Redactor().text(text)) == expected


SHAPES = {
    "github-token": [f"ghp_{B}{B[:16]}", f"gho_{B}{B}", f"ghs_{B}{B}", f"github_pat_{B}_{B}"],
    "aws-key": ["AKIAIOSFODNN7EXAMPLE", "ASIAIOSFODNN7EXAMPLE"],
    "slack-token": ["xoxb-123456789012-abcdefABCDEF", "xoxp-1234567890-abc", "xoxa-2-1234567890", "xoxr-1234567890"],
    "sk-key": [f"sk-{B}{B}", f"sk-proj-{B}", f"sk-ant-api03-{B}"],
    "stripe-key": [f"sk_live_{B}", f"rk_live_{B}"],
    "google-key": [f"AIza{B}{B[:15]}"],
    "gitlab-token": [f"glpat-{B}"],
    "npm-token": [f"npm_{B}{B[:16]}"],
    "pypi-token": [f"pypi-AgEIcHlwaS5vcmc{B}{B}"],
    "jwt": ["eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.dozjgNryP4J3jVmNHl0w5N_XgL0n3I9PlFUP0THsR8U"],
    "private-key": [
        "-----BEGIN RSA PRIVATE KEY-----\nMIIEow\nabc\n-----END RSA PRIVATE KEY-----",
        "-----BEGIN PRIVATE KEY-----\nMIIEvQ cut off",
        "-----BEGIN OPENSSH PRIVATE KEY-----\nb3Blbn\n-----END OPENSSH PRIVATE KEY-----",
    ],
    "card": ["4111111111111111", "4111 1111 1111 1111", "5555-5555-5555-4444", "378282246310005", "6011111111111117"],
}  # fmt: skip


@pytest.mark.parametrize(("rule", "secret"), [(rule, text) for rule, texts in SHAPES.items() for text in texts])
def test_a_text_shaped_like_a_secret_is_masked_wherever_it_stands(rule: str, secret: str) -> None:
    for text in (secret, f"value: {secret}", f"({secret})", f"{secret}\nnext", {secret: 1}):
        shown = json.dumps(Redactor().for_people({"x": text}))
        assert f"[REDACTED:{rule}:" in shown, shown
        assert json.dumps(secret)[1:-1] not in shown


@pytest.mark.parametrize(
    ("text", "secret"),
    [
        ("Authorization: Bearer abcDEF123456", "abcDEF123456"),
        ("curl -H 'Authorization: Basic dXNlcjpwYXNzd29yZA=='", "dXNlcjpwYXNzd29yZA=="),
        ("got Basic dXNlcjpwYXNzd29yZA== from it", "dXNlcjpwYXNzd29yZA=="),
        ("bearer 0a1b2c3d4e5f6789", "0a1b2c3d4e5f6789"),
        ("Set-Cookie: sid=8f3a9c2b11; Path=/", "8f3a9c2b11"),
        ("X-API-Key: 9f8e7d6c5b4a", "9f8e7d6c5b4a"),
        # What introduces the secret looks like a value itself, and like one that is no secret.
        ("cookie=authorization=Abc123def", "Abc123def"),
        ("cookie=cookie=cookie=Abc123def", "Abc123def"),
        ("authorization: authorization = Abc123def", "Abc123def"),
        ("cookie=please-cookie=bearer Abc123def", "Abc123def"),
        ("bearer over.and/bearer 0a1b2c3d4e5f6789", "0a1b2c3d4e5f6789"),
        ("apikey=" * 400 + "'Abc123def", "Abc123def"),
        ("connect failed: user=ada password=hunter2 host=db", "hunter2"),
        ('{"db": {"password": "hunter2", "port": 5432}}', "hunter2"),
        ('  [{"credentials": {"a": "hunter2"}}]', "hunter2"),
        ('body was {\\"client_secret\\": \\"hunter2!\\"} cut', "hunter2!"),
    ],
)
def test_headers_and_assignments_in_a_text_lose_their_value(text: str, secret: str) -> None:
    shown = Redactor().text(text)
    assert secret not in shown
    assert "[REDACTED:" in shown


def test_a_card_number_is_masked_as_a_number_too() -> None:
    shown = Redactor().for_people({"n": 4111111111111111, "m": 4111111111111112, "id": 1700000000000})
    assert shown["n"].startswith("[REDACTED:card:")
    assert (shown["m"], shown["id"]) == (4111111111111112, 1700000000000)
