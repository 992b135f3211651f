"""A folder of Python tools becomes a manifest: always the same one, or an error that names the place."""

import json
import os
import sys
import time
from pathlib import Path
from typing import Any

import pytest
import yaml

from placet import ToolkitError
from placet.toolkit import collect

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
HEAD = "from placet import Toolkit, tool\ntoolkit = Toolkit('Demo', '1.0.0')\n"


def write(folder: Path, **files: str) -> Path:
    for name, text in files.items():
        path = folder / f"{name.replace('__', '/')}.py"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return folder


def only_tool(folder: Path) -> dict[str, Any]:
    [tool] = collect(folder)["spec"]["tools"]
    assert isinstance(tool, dict)
    return tool


def test_the_calculator_folder_is_its_own_manifest() -> None:
    collected = collect(EXAMPLES / "calculator")
    written = yaml.safe_load((EXAMPLES / "calculator" / "1.1.0.yaml").read_text())
    assert collected["metadata"] == written["metadata"]
    [mine], [theirs] = collected["spec"]["tools"], written["spec"]["tools"]
    for key, value in theirs.items():
        if key == "runtime":
            assert mine[key] | value == mine[key]
        else:
            assert mine[key] == value


def test_version_1_0_of_the_calculator_knows_no_third_number() -> None:
    written = yaml.safe_load((EXAMPLES / "calculator" / "1.0.0.yaml").read_text())
    [tool] = written["spec"]["tools"]
    assert list(tool["input"]["properties"]) == ["a", "b"]
    assert tool["input"]["additionalProperties"] is False


def test_the_doorbell_gives_nothing_and_the_clock_gives_a_date_time() -> None:
    assert only_tool(EXAMPLES / "doorbell")["output"] is None
    clock = only_tool(EXAMPLES / "system")
    assert clock["name"] == "GetTimestamp"
    assert clock["output"] == {"type": "string", "format": "date-time"}


def test_a_tool_without_a_return_hint_has_no_output_field(tmp_path: Path) -> None:
    write(tmp_path, demo=HEAD + "@tool\ndef go():\n    'Goes.'\n")
    assert "output" not in only_tool(tmp_path)


def test_everything_said_is_in_the_manifest(tmp_path: Path) -> None:
    write(
        tmp_path,
        demo=HEAD
        + """
from placet import ToolContext
@tool(name="Send", title="Send it", description="Sends.", risk="high", capabilities={"b.c", "a"}, idempotency="keyed",
      timeout="1m", retry={"maxAttempts": 3, "backoff": "1s"}, requires_secrets=["KEY"],
      requires_authorization=[{"id": "google", "oauth2": {"scopes": ["mail"]}}], requires_user_id=True,
      non_inferrable=["to"], annotations={"openWorldHint": True})
def send_mail(to: str, context: ToolContext) -> None: ...
""",
    )
    assert only_tool(tmp_path) == {
        "name": "Send",
        "title": "Send it",
        "description": "Sends.",
        "risk": "high",
        "capabilities": ["a", "b.c"],
        "idempotency": "keyed",
        "input": {
            "type": "object",
            "properties": {"to": {"type": "string"}},
            "required": ["to"],
            "additionalProperties": False,
        },
        "output": None,
        "nonInferrable": ["to"],
        "annotations": {"openWorldHint": True},
        "requirements": {
            "authorization": [{"id": "google", "oauth2": {"scopes": ["mail"]}}],
            "secrets": [{"id": "KEY"}],
            "userId": True,
        },
        "runtime": {
            "type": "python",
            "entrypoint": "demo:send_mail",
            "dispatch": "queue",
            "timeout": "1m",
            "retry": {"maxAttempts": 3, "backoff": "1s", "maxBackoff": "30s", "jitter": "none"},
        },
    }


def test_icons_are_in_the_manifest_where_there_are_any(tmp_path: Path) -> None:
    write(tmp_path, demo=HEAD + "@tool(icons=[{'src': 'https://a.example/i.png'}])\ndef go() -> None:\n    'Goes.'\n")
    assert only_tool(tmp_path)["icons"] == [{"src": "https://a.example/i.png"}]


def test_the_same_files_give_the_same_bytes(tmp_path: Path) -> None:
    tools = "".join(f"@tool(capabilities={{'a', 'b', 'c'}})\ndef t{n}() -> None:\n    'T.'\n" for n in (3, 1, 2))
    write(tmp_path, demo=HEAD + tools)
    first, second = (json.dumps(collect(tmp_path)) for _ in range(2))
    assert first == second
    assert [tool["name"] for tool in json.loads(first)["spec"]["tools"]] == ["T1", "T2", "T3"]


def test_tools_may_live_in_several_modules_and_packages(tmp_path: Path) -> None:
    one = "from placet import tool\n@tool\ndef one() -> None:\n    'One.'\n"
    write(
        tmp_path,
        demo=HEAD + "from parts.two import two\n",  # imported here, collected there
        parts__one=one,
        parts__two=one.replace("one()", "two()"),
    )
    (tmp_path / "parts" / "__init__.py").touch()
    entrypoints = [tool["runtime"]["entrypoint"] for tool in collect(tmp_path)["spec"]["tools"]]
    assert entrypoints == ["parts.one:one", "parts.two:two"]


def test_postponed_annotations_say_the_same(tmp_path: Path) -> None:
    types = (
        "from dataclasses import dataclass\nfrom typing import NotRequired, Required, TypedDict\n"
        "class A(TypedDict):\n    a: int\n    b: NotRequired[int]\n"
        "class B(TypedDict, total=False):\n    a: Required[int]\n    b: int\n"
        "@dataclass\nclass C:\n    a: int\n    b: int = 1\n"
        "@tool\ndef go(x: A, y: B, z: C) -> None:\n    'Goes.'\n"
    )
    write(tmp_path, demo="from __future__ import annotations\n" + HEAD + types)
    parameters = only_tool(tmp_path)["input"]["properties"]
    assert [parameters[name]["required"] for name in "xyz"] == [["a"], ["a"], ["a"]]


def test_a_second_name_does_not_make_a_second_tool(tmp_path: Path) -> None:
    write(tmp_path, demo=HEAD + GO + "same = go\n")
    assert only_tool(tmp_path)["runtime"]["entrypoint"] == "demo:go"


def test_files_that_do_not_speak_of_placet_are_left_alone(tmp_path: Path) -> None:
    write(tmp_path, demo=HEAD + "@tool\ndef go() -> None:\n    'Goes.'\n", setup="raise SystemExit('not a toolkit')\n")
    assert only_tool(tmp_path)["name"] == "Go"


def test_collecting_leaves_no_trace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DATABASE_URL", "postgres://sesame")
    write(
        tmp_path,
        demo=HEAD
        + "import os, sys\nprint('noise')\nos.write(1, b'noise')\n"
        + "assert 'DATABASE_URL' not in os.environ\n@tool\ndef go() -> None:\n    'Goes.'\n",
    )
    before = set(sys.modules), list(sys.path), os.getcwd()
    assert only_tool(tmp_path)["name"] == "Go"
    assert (set(sys.modules), list(sys.path), os.getcwd()) == before
    assert [path.name for path in tmp_path.iterdir()] == ["demo.py"]


GO = "@tool\ndef go() -> None:\n    'Goes.'\n"


@pytest.mark.parametrize(
    ("source", "reason"),
    [
        ("from placet import tool\n" + GO, 'no module says toolkit = Toolkit(name="...", version="...")'),
        (HEAD, "no function is marked with @tool"),
        (HEAD + "other = Toolkit('Other', '1.0.0')\n" + GO, "a folder holds one toolkit, but there are"),
        (HEAD + GO + "def broken(:\n", "demo.py:6: "),
        (HEAD + "import nonesuch\n" + GO, "demo.py:3: ModuleNotFoundError: No module named 'nonesuch'"),
        (HEAD + "raise SystemExit(3)\n" + GO, "demo.py:3: SystemExit: 3"),
        (HEAD + "@tool\ndef go(a) -> None:\n    'Goes.'\n", "demo.py:3: go: parameter 'a' has no type hint"),
        (HEAD + "@tool\ndef go(a: complex) -> None:\n    'Goes.'\n", "demo.py:3: go: parameter 'a': the type complex"),
        (HEAD + "@tool(risk='x')\ndef go() -> None:\n    'Goes.'\n", "demo.py:3: go: risk must be one of"),
        (HEAD + "@tool\ndef go() -> None: ...\n", "demo.py:3: go: a tool needs a docstring"),
        (HEAD + "@tool(non_inferrable=['b'])\ndef go() -> None:\n    'Goes.'\n", "names 'b', which is no parameter"),
        (
            HEAD + GO + "@tool(name='GO')\ndef other() -> None:\n    'Other.'\n",
            "demo:other and demo:go are both called",
        ),
        (HEAD + "import functools\n@functools.cache\n" + GO, "demo.py:4: go: @tool must be the outermost mark"),
        (HEAD.replace("1.0.0", "1.0") + GO, "demo.py:2: the version '1.0' of Demo must be three whole numbers"),
        (HEAD + "@tool(icons={'src': 'x'})\ndef go() -> None:\n    'Goes.'\n", "icons must be a list"),
        (HEAD + "@tool(icons=['x'])\ndef go() -> None:\n    'Goes.'\n", "icons must name the address"),
        (HEAD + "@tool(annotations={'x': float('nan')})\ndef go() -> None:\n    'Goes.'\n", "is not a finite number"),
        (HEAD + "import os\nos._exit(7)\n", "failed with code 7"),
    ],
)
def test_an_error_names_the_place_and_the_reason(tmp_path: Path, source: str, reason: str) -> None:
    write(tmp_path, demo=source)
    with pytest.raises(ToolkitError) as refusal:
        collect(tmp_path)
    assert reason in str(refusal.value)


def test_a_module_that_hides_behind_one_of_pythons_is_refused(tmp_path: Path) -> None:
    write(tmp_path, json=HEAD + GO)
    with pytest.raises(ToolkitError, match="the name json is taken by another module"):
        collect(tmp_path)


def test_a_module_may_be_called_like_one_of_placets_own_parts(tmp_path: Path) -> None:
    write(tmp_path, registry=HEAD + GO)
    assert only_tool(tmp_path)["runtime"]["entrypoint"] == "registry:go"


def test_a_module_that_never_finishes_is_given_up(tmp_path: Path) -> None:
    write(tmp_path, demo=HEAD + "import time\ntime.sleep(60)\n" + GO)
    with pytest.raises(ToolkitError, match=r"took longer than 0\.5 s"):
        collect(tmp_path, timeout=0.5)


def test_a_process_that_a_module_started_does_not_outlive_the_collecting(tmp_path: Path) -> None:
    write(
        tmp_path,
        demo=HEAD
        + "import os, pathlib, subprocess\nchild = subprocess.Popen(['sleep', '60'])\n"
        + "(pathlib.Path(__file__).parent / 'pid').write_text(str(child.pid))\n"
        + GO,
    )
    with pytest.raises(ToolkitError, match="took longer"):  # it holds on to the output
        collect(tmp_path, timeout=1)
    pid = int((tmp_path / "pid").read_text())
    for _ in range(100):
        if not Path(f"/proc/{pid}").exists() or " Z " in Path(f"/proc/{pid}/stat").read_text():
            return
        time.sleep(0.01)
    pytest.fail("the child is still there")


def test_a_folder_that_is_none_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ToolkitError, match="is not a folder"):
        collect(tmp_path / "nowhere")
