"""JSON from strangers is read with one meaning, in bounded time, or refused."""

import json
import time

import pytest

from registry import strictjson
from registry.strictjson import StrictJSONError, loads


def refusal(body: bytes, **options: int) -> StrictJSONError:
    with pytest.raises(StrictJSONError) as refused:
        loads(body, **options)
    return refused.value


def test_plain_json_is_read_as_it_is() -> None:
    value = {"a": [1, 2.5, -3, True, None, "text é 😀"], "b": {"c": {}}}
    assert loads(json.dumps(value).encode()) == value
    assert loads(b' "\\ud83d\\ude00" ') == "😀"
    assert loads(b'"\\\\u0000"') == "\\u0000"


@pytest.mark.parametrize("body", [b"[" * 100_000, b"[" * 65 + b"]" * 65, b'{"a":' * 65 + b"1" + b"}" * 65])
def test_deep_nesting_is_refused(body: bytes) -> None:
    error = refusal(body)
    assert (error.code, error.status) == ("too_deep", 400)


def test_nesting_up_to_the_cap_is_read() -> None:
    assert loads(b"[" * 64 + b"]" * 64)


def test_brackets_and_commas_inside_texts_do_not_count() -> None:
    assert loads(json.dumps({"csv": "a,b,[{" * 150_000}).encode())["csv"].startswith("a,b")


def test_a_body_above_the_cap_is_refused_before_it_is_read() -> None:
    error = refusal(b'"' + b"x" * 1_000_000 + b'"')
    assert (error.code, error.status) == ("too_large", 413)
    assert refusal(b"[1, 2]", max_bytes=3).code == "too_large"


@pytest.mark.parametrize("body", [b"NaN", b"[Infinity]", b"-Infinity", b"1e400", b"-1e400", b"[1E999999]"])
def test_numbers_that_are_not_finite_are_refused(body: bytes) -> None:
    assert refusal(body).code == "bad_number"


@pytest.mark.parametrize("body", [b"9" * 5000, b"18446744073709551616", b"-9223372036854775809"])
def test_integers_beyond_64_bits_are_refused(body: bytes) -> None:
    assert refusal(body).code == "bad_number"


def test_integers_of_64_bits_are_read() -> None:
    assert loads(b"[18446744073709551615, -9223372036854775808]") == [2**64 - 1, -(2**63)]


@pytest.mark.parametrize("body", [b'{"to":"a","to":"b"}', b'{"to":1,"t\\u006f":2}', b'[{"x":{"k":1,"k":1}}]'])
def test_the_same_key_twice_is_refused_also_when_it_is_escaped(body: bytes) -> None:
    assert refusal(body).code == "duplicate_key"


@pytest.mark.parametrize(
    ("body", "code"),
    [
        (b'"\xff"', "bad_utf8"),
        (b'"\xed\xa0\x80"', "bad_utf8"),
        (b'"\xc0\xaf"', "bad_utf8"),
        ('{"a":1}'.encode("utf-16"), "bad_utf8"),
        ('{"a":1}'.encode("utf-16-le"), "bad_character"),
        (b"\xef\xbb\xbf{}", "bad_character"),
        (b'"\\ud800"', "bad_character"),
        (b'{"\\udfff":1}', "bad_character"),
        (b'"\\u0000"', "bad_character"),
        (b'["x\x00"]', "bad_character"),
    ],
)
def test_text_that_cannot_be_stored_is_refused(body: bytes, code: str) -> None:
    assert refusal(body).code == code


@pytest.mark.parametrize("body", [b"", b" ", b"{", b'{"a":1,}', b"01", b"'a'", b"1 2", b'"\x01"', b"{a:1}", b"[1]]"])
def test_what_is_not_json_is_malformed(body: bytes) -> None:
    assert refusal(body).code == "malformed"


@pytest.mark.parametrize(
    "body",
    [
        json.dumps({str(number): 1 for number in range(100_000)}).encode(),
        b"[" + b"1," * 999_999 + b"1]",
        b"[" + b"{}," * 300_000 + b"{}]",
    ],
)
def test_too_many_values_are_refused_within_a_tenth_of_a_second(body: bytes) -> None:
    spent = []
    for _ in range(3):
        start = time.process_time()
        error = refusal(body, max_bytes=10_000_000)
        spent.append(time.process_time() - start)
        assert (error.code, error.status) == ("too_many_nodes", 413)
    assert min(spent) < 0.1


@pytest.mark.parametrize(
    "body",
    [
        b'"' * 999_999,
        b'"' + b"\\" * 999_998,
        b'["' + b'\\"' * 400_000,
        b"{" * 63 + b'"' * 900_000,
        # So many brackets that texts are told from what is around them, and a text that does not end.
        b"[" * 65 + b'"' + b'\\"' * 400_000,
        b"[]," * 65 + b'\\"' * 400_000,
        b"[]," * 65 + b'"' + b'\\"' * 400_000 + b"\\",
        b"[]," * 65 + b'"' * 900_001,
        b"1," * 100_000 + b'"' + b'\\"' * 300_000 + b"\\",
    ],
)
def test_broken_texts_do_not_make_the_reader_slow(body: bytes) -> None:
    start = time.process_time()
    refusal(body)
    assert time.process_time() - start < 0.5


def test_a_refusal_never_repeats_the_body() -> None:
    for body in (b'{"secret-value": 1, "secret-value": 2}', b'["secret-value', b'{"secret-value": NaN}'):
        assert "secret-value" not in refusal(body).message


def test_the_caps_are_what_the_documentation_says() -> None:
    assert (strictjson.MAX_BYTES, strictjson.MAX_DEPTH, strictjson.MAX_VALUES) == (1_000_000, 64, 100_000)
