"""YAML from strangers is plain data, or it is refused."""

import time
import tracemalloc

import pytest

from registry import yamlwriting
from registry.yamlreading import YAMLError, read


def refusal(text: str | bytes) -> YAMLError:
    with pytest.raises(YAMLError) as refused:
        read(text.encode() if isinstance(text, str) else text)
    return refused.value


def test_plain_data_is_read_with_its_lines() -> None:
    value, lines = read(b"a: 1\nb:\n  - x: true\n    y: [1.5, ~, 'no', no, 2024-01-01]\n")
    assert value == {"a": 1, "b": [{"x": True, "y": [1.5, None, "no", "no", "2024-01-01"]}]}
    assert (lines["a"], lines["b[0].x"], lines["b[0].y[2]"]) == (1, 3, 4)


def test_words_that_other_readers_take_for_something_else_stay_words() -> None:
    assert read(b"{on: off, yes: no, v: 1.1.0, o: 0o14, h: 0x1F, t: 12:30:00}")[0] == {
        "on": "off",
        "yes": "no",
        "v": "1.1.0",
        "o": "0o14",
        "h": "0x1F",
        "t": "12:30:00",
    }


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ("a: !!python/object/apply:os.system [id]", "tag"),
        ("!!python/object:subprocess.Popen {}", "tag"),
        ("a: !!binary aGk=", "tag"),
        ("a: !custom x", "tag"),
        ("a: &x [1]\nb: *x", "anchor"),
        ("a: *x", "alias"),
        ("a:\n  <<: {b: 1}", "merge"),
        ("a: 1\nb: 2\na: 3", "twice"),
        ("? [1, 2]\n: x", "key"),
        ("a: 1\n---\nb: 2", "more than one document"),
        ("", "empty"),
        ("a: [1, 2", "is not YAML"),
        ("a: .inf", "infinity"),
        ("a: .nan", "infinity"),
        ("a: 1e999", "too large"),
        ("a: 99999999999999999999", "64 bits"),
        ("[" * 100_000, "deep"),
        ("a: " * 3, "is not YAML"),
        ("x: '" + "y" * 1_000_000 + "'", "larger"),
        ("[" + "1," * 200_000 + "]", "values"),
    ],
)
def test_what_is_more_than_plain_data_is_refused(text: str, word: str) -> None:
    start = time.process_time()
    assert word in refusal(text).reason
    assert time.process_time() - start < 1


def test_an_alias_bomb_is_refused_at_its_first_anchor() -> None:
    bomb = "a: &a [x, x, x, x, x, x, x, x, x]\n" + "".join(
        f"{chr(98 + i)}: &{chr(98 + i)} [{', '.join([f'*{chr(97 + i)}'] * 9)}]\n" for i in range(9)
    )
    assert refusal(bomb).line == 1


def test_fifty_megabytes_are_refused_unread() -> None:
    start = time.process_time()
    assert "larger" in refusal(b"a: 1\n" * 10_000_000).reason
    assert time.process_time() - start < 0.1


def test_text_that_is_not_utf8_is_refused() -> None:
    assert "UTF-8" in refusal(b"a: \xff").reason
    assert refusal(b"a: \x00").reason


def test_a_refusal_names_the_line() -> None:
    assert refusal("a: 1\nb: 2\na: 3").line == 3


def test_lines_are_found_by_path_or_by_the_nearest_place_around_it() -> None:
    lines = read(b"a:\n  b.c:\n    - x\n    - {d: 1,\n       e: [2]}\n  b:\n    c: 1\n'': {f: 1}\n")[1]
    assert [lines[path] for path in ("a", "a.b.c", "a.b.c[0]", "a.b.c[1].e[0]", "a.b")] == [1, 2, 3, 5, 6]
    assert [lines.nearest(path) for path in ("a.b.c[1].x.y", "a.b.c[2]", "a.x", "a[0]")] == [4, 2, 1, 1]
    assert lines.nearest("x") is None
    assert lines.nearest("x[999999999999]") is None
    assert read(b"- 1\n- 2\n")[1]["[1]"] == 2
    for path in ("a.x", "x", "", "a.b.c[2]", "[0]"):
        with pytest.raises(KeyError):
            lines[path]


@pytest.mark.parametrize("length", [2_000, 20_000, 400_000])
def test_a_long_key_over_many_values_takes_no_memory_for_each_of_them(length: int) -> None:
    text = b'? "' + b"k" * length + b'"\n: [' + b"1," * 40_000 + b"]"
    tracemalloc.start()
    try:
        lines = read(text)[1]
        assert tracemalloc.get_traced_memory()[1] < 20_000_000
    finally:
        tracemalloc.stop()
    assert lines["k" * length + "[39999]"] == 2


def test_what_is_written_is_read_back_as_it_was() -> None:
    tricky = [
        "1e5",
        "1",
        "1.0",
        "true",
        "no",
        "~",
        "",
        "null",
        ".inf",
        "2024-01-01",
        "a: b",
        "x\ny\n",
        " x ",
        "é😀",
        "#",
        "- a",
        "<<",
        "=",
        "12e03",
    ]
    same = {"list": tricky, "numbers": [1, 1.0, -2.5, 1e22, 10**18], "map": {word: word for word in tricky}}
    same["again"] = same["numbers"]
    assert repr(read(yamlwriting.write(same).encode())[0]) == repr(same)
