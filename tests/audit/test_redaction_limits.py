"""What redaction leaves alone, what it does when it cannot, and what it costs."""

import base64
import hashlib
import json
import random
import time
from datetime import UTC, datetime
from itertools import islice, product
from typing import Any
from uuid import UUID

import pytest

from audit import redaction
from audit.needles import problem
from audit.redaction import UNREDACTABLE, Redactor, clip
from tests.audit.spellings import SECRETS, B

PROSE = """the token ring was basic understanding of bearer bonds secret garden session keys author password reset
policy task risk disk desk-sharing ask-me risk-based-approach sk-learn npm_package pypi-publish github_pattern akiaki
shipping cookie recipe signature dish api key concept authorization required private key cryptography"""


def benign(seed: int) -> list[Any]:
    """Five hundred answers as tools give them: prose, logs, tables, ids, addresses, code."""
    chance = random.Random(seed)
    words = PROSE.split()
    made: list[Any] = []
    for number in range(500):
        stamp = chance.randrange(10**12, 2 * 10**12)
        made.append(
            [
                " ".join(chance.choices(words, k=25)).capitalize() + ".",
                {"id": stamp, "uuid": str(UUID(int=chance.getrandbits(128))), "sha": chance.randbytes(20).hex()},
                f"{datetime.fromtimestamp(stamp / 1000, UTC)} INFO worker[{number}] took {number} ms, id={stamp}",
                f"https://example.com/{number}?page={number}&sort=name&lang=en#top",
                {
                    "rows": [
                        {"name": "Ada", "amount": chance.random() * 1000, "phone": "+49 30 1234567"} for _ in range(3)
                    ]
                },
                f"def f{number}(author, key):\n    return author.keys[{number}] == key  # basic sanity check",
                {"usage": {"prompt_tokens": number, "max_tokens": 4096}, "is_authorized": True, "authors": ["Ada L."]},
                f"order 20{number:04d}-{chance.randrange(10**9):09d}, tracking 1Z{chance.randrange(10**15):015d}",
                [f"v{number}.{number % 7}.0", "3.14159265358979", "0x7ffd5fbff8c0", "2001:db8::1", "a@b.example"],
                "Authorization is required: use bearer or basic authentication. Password: at least 12 letters.",
            ][number % 10]
        )
    return made


def test_ordinary_answers_are_left_alone() -> None:
    redactor = Redactor({"s": SECRETS["plain"]})
    corpus = benign(20260101)
    altered = [value for value in corpus if redactor.for_people(value) != value]
    assert len(altered) <= 5, altered[:5]
    assert all(redactor.for_caller(value) == value for value in corpus)


def test_redacting_twice_changes_nothing_more() -> None:
    redactor = Redactor({"s": SECRETS["awkward"]})
    value = {
        "password": "x" * 9,
        "t": f"a {SECRETS['awkward']} ghp_{B}{B}",
        "u": "https://u:p@h/?token=a",
        "j": '{"pin":"1"}',
    }
    once = redactor.for_people(value)
    assert redactor.for_people(once) == once


def test_two_keys_that_become_one_mark_stay_two() -> None:
    secret = SECRETS["plain"]
    shown = Redactor({"s": secret}).for_caller(
        {secret: 1, json.dumps(secret)[1:-1].upper(): 2, base64.b64encode(secret.encode()).decode(): 3}
    )
    assert sorted(shown.values()) == [1, 2, 3]


def test_binary_content_is_kept_as_length_and_digest() -> None:
    content = bytes(range(256))
    expected = f"[BINARY:256:{hashlib.sha256(content).hexdigest()}]"
    shown = Redactor().for_people(
        {
            "raw": content,
            "image": {"type": "image", "mimeType": "image/png", "data": base64.b64encode(content).decode()},
        }
    )
    assert shown["raw"] == expected
    assert shown["image"] == {"type": "image", "mimeType": "image/png", "data": expected}


def test_objects_with_a_plain_meaning_are_spoken_and_others_are_not_shown() -> None:
    class Odd:
        def __repr__(self) -> str:
            return SECRETS["plain"]

    identity = UUID(int=5)
    assert Redactor().for_people({"id": identity, "t": (1, 2), "odd": Odd()}) == {
        "id": str(identity),
        "t": [1, 2],
        "odd": UNREDACTABLE,
    }


def test_a_failing_redactor_shows_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*args: Any) -> Any:
        raise RuntimeError("boom")

    redactor = Redactor({"s": SECRETS["plain"]})
    monkeypatch.setattr(redaction, "_by_value", fail)
    assert redactor.for_people({"a": SECRETS["plain"]}) == UNREDACTABLE
    assert redactor.for_caller({"a": SECRETS["plain"]}) == UNREDACTABLE
    assert redactor.text(SECRETS["plain"]) == UNREDACTABLE


def test_endless_nesting_shows_nothing() -> None:
    deep: Any = SECRETS["plain"]
    for _ in range(100_000):
        deep = [deep]
    assert Redactor({"s": SECRETS["plain"]}).for_people(deep) == UNREDACTABLE
    assert Redactor({"s": SECRETS["plain"]}).for_caller(deep) == UNREDACTABLE


def test_clipping_never_cuts_a_mark() -> None:
    shown = Redactor({"s": SECRETS["plain"]}).text("x" * 50 + SECRETS["plain"] + "y" * 50)
    for limit in range(20, len(shown) + 1):
        clipped = clip(shown, limit)
        assert len(clipped) <= limit
        assert "[REDACTED" not in clipped or "[REDACTED:s:" in clipped.split("…")[0]
        assert clipped.count("[REDACTED") == len(
            [part for part in clipped.split("[REDACTED")[1:] if "]" in part.split("…")[0]]
        )
    assert clip(shown, len(shown)) == shown


@pytest.mark.parametrize("value", ["short", "password", "changeme", "Iloveyou", "administrator"])
def test_what_cannot_be_masked_safely_cannot_be_a_secret(value: str) -> None:
    assert problem(value) is not None


def test_a_real_secret_can_be_registered() -> None:
    assert problem(SECRETS["eight"]) is None


HOSTILE = [
    *("-eyJ", "-sk-", '"token":"', "%41", "&amp;", "[", "4111 ", "bearer ", "://", "x\n"),
    *("cookie=", "Cookie: ", "authorization=", "apikey:", "auth-token=", "basic ", "://git@", "?a=", "-----BEGIN "),
]


@pytest.mark.parametrize("text", HOSTILE)
def test_a_hostile_megabyte_takes_bounded_time(text: str) -> None:
    redactor = Redactor({"s": SECRETS["plain"]})
    start = time.process_time()
    redactor.for_people(text * (1_000_000 // len(text)))
    assert time.process_time() - start < 5


def test_keys_that_all_become_one_mark_take_bounded_time() -> None:
    gaps = islice(product(" \t\n\r", repeat=8), 40_000)
    value = {"{" + "".join(gap) + '"pin":"1234"}': number for number, gap in enumerate(gaps)}
    start = time.process_time()
    shown = Redactor().for_people(value)
    assert time.process_time() - start < 5
    assert len(shown) == 40_000


def test_a_small_value_costs_microseconds() -> None:
    redactor = Redactor()
    schema = {"type": "object", "properties": {"a": {"type": "number"}, "b": {"type": "number"}}}

    def once() -> float:
        start = time.perf_counter()
        redactor.for_people({"a": 1, "b": 2.5}, schema)
        return time.perf_counter() - start

    assert min(once() for _ in range(500)) < 0.0002


def test_a_megabyte_against_twenty_secrets_takes_a_fraction_of_a_second() -> None:
    text = "lorem ipsum dolor sit amet, " * 37_000
    redactor = Redactor({f"s{number}": f"secret-value-{number}-{number * 7919}" for number in range(20)})

    def once() -> float:
        start = time.perf_counter()
        assert redactor.for_caller(text) == text
        return time.perf_counter() - start

    assert min(once() for _ in range(3)) < 0.5
