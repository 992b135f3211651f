"""Who is still writing a manifest is told all that is wrong with it, each with its line."""

import json
from textwrap import dedent

import pytest

from registry.manifestfaults import reading
from tests.factories.registry import manifest

BROKEN = dedent("""\
    apiVersion: placet.dev/v1
    kind: Toolkit
    metadata:
      name: Weather
      version: 1.0
    spec:
      tools:
        - name: Today
          risk: hihg
          runtime: {type: http, endpoint: "https://weather.example"}
        - name: Tomorrow
          runtime: {type: http}
""")


def told(text: bytes) -> list[tuple[int | None, str]]:
    return [(fault.line, fault.path) for fault in reading(text).faults]


def test_a_fault_of_the_head_and_one_of_each_tool_are_told_in_the_order_of_the_text() -> None:
    expected = [(5, "metadata.version"), (9, "spec.tools[0].risk"), (12, "spec.tools[1].runtime.endpoint")]
    assert told(BROKEN.encode()) == expected


MANY = dedent("""\
    apiVersion: placet.dev/v1
    kind: Toolkit
    metadata:
      name: 9bad
      version: one
      colour: red
    spec:
      tools:
        - name: To day
          risk: lowish
          idempotency: maybe
          foo: 1
          bar.baz: 2
          capabilities: [Mail]
          nonInferrable: [city]
          input: {type: object, properties: 7}
          runtime:
            type: http
            timeout: soon
            colour: red
            retry: {maxAttempts: 0, jitter: lots}
        - name: Tomorrow
          risk: lowish
          runtime: {type: htpp}
          auth: {profile: api_key_header, secretRef: weather}
""")


def test_all_faults_of_the_head_and_of_each_tool_are_told_with_their_lines() -> None:
    assert told(MANY.encode()) == [
        (4, "metadata.name"),
        (5, "metadata.version"),
        (6, "metadata.colour"),
        (9, "spec.tools[0].name"),
        (10, "spec.tools[0].risk"),
        (11, "spec.tools[0].idempotency"),
        (12, "spec.tools[0].foo"),
        (13, "spec.tools[0].bar.baz"),
        (14, "spec.tools[0].capabilities[0]"),
        (16, "spec.tools[0].input.properties"),
        (17, "spec.tools[0].runtime.endpoint"),
        (19, "spec.tools[0].runtime.timeout"),
        (20, "spec.tools[0].runtime.colour"),
        (23, "spec.tools[1].risk"),
        (24, "spec.tools[1].runtime.type"),
        (25, "spec.tools[1].auth.headerName"),
    ]


def test_what_was_only_taken_out_to_read_on_is_not_told_as_missing() -> None:
    for field in ("name", "runtime", "input", "output", "auth", "requirements", "annotations", "icons"):
        document = manifest("Weather", "1.0.0", {field: 7})
        places = [path for _, path in told(json.dumps(document).encode())]
        assert len(places) == 1, (field, places)
        assert places[0].startswith(f"spec.tools[0].{field}")


def test_json_has_lines_too() -> None:
    document = manifest("Weather", "1.0", {"risk": "hihg"})
    text = json.dumps(document, indent=2)
    lines = text.splitlines()
    for line, path in told(text.encode()):
        assert line is not None
        assert f'"{path.rpartition(".")[2]}"' in lines[line - 1]
    assert told(b'{"a": 1,\n "b": }') == [(2, "")]


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (b"a: &x [1]\nb: *x", "uses an anchor; write the content out"),
        (b"a: !!python/object:os.system x", "uses a tag; only plain data is read"),
        (b"a: 1\n" * 200_001, "is larger than 1000000 bytes"),
        (b"\xff\xfe", "is not UTF-8"),
        (b"", "is empty"),
    ],
)
def test_what_is_never_read_is_refused_in_the_words_of_an_import(text: bytes, reason: str) -> None:
    assert [fault.reason for fault in reading(text).faults] == [reason]


def test_a_good_manifest_and_no_more_than_fifty_faults() -> None:
    assert reading(json.dumps(manifest()).encode()).manifest is not None
    many = manifest("Weather", "1.0.0", *({"name": f"T{number}", "risk": "x"} for number in range(80)))
    assert 40 < len(reading(json.dumps(many).encode()).faults) <= 50
