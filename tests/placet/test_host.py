"""A host answers every request with exactly one final frame, and tells nothing it should not."""

import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from placet import child, frames

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
NOTHING_MORE = {"can_retry": False, "additional_prompt_content": "", "retry_after_ms": None}


def test_the_calculator_adds_and_keeps_whole_numbers_whole(start_host: Any) -> None:
    host = start_host(folder=EXAMPLES / "calculator")
    assert host.call("calculator:add", arguments={"a": 1, "b": 2}) == [{"kind": "value", "value": 3}]
    assert host.call("calculator:add", arguments={"a": 1, "b": 2, "c": 0.5}) == [{"kind": "value", "value": 3.5}]


@pytest.mark.parametrize("bell", ["doorbell42", "doorbell84"])
def test_a_known_doorbell_rings_and_returns_nothing(start_host: Any, bell: str) -> None:
    host = start_host(folder=EXAMPLES / "doorbell")
    assert host.call("doorbell:ring", arguments={"doorbell_id": bell}) == [
        {"kind": "log", "level": "info", "message": f"{bell} rings"},
        {"kind": "value", "value": None},
    ]


def test_an_unknown_doorbell_fails_as_the_specification_shows(start_host: Any) -> None:
    host = start_host(folder=EXAMPLES / "doorbell")
    assert host.call("doorbell:ring", arguments={"doorbell_id": "doorbell1"}) == [
        {
            "kind": "error",
            "type": "tool_error",
            "message": "Doorbell ID not found",
            "developer_message": "The doorbell with ID 'doorbell1' does not exist.",
            "can_retry": True,
            "additional_prompt_content": "ids: doorbell42,doorbell84",
            "retry_after_ms": 500,
        }
    ]


def test_the_clock_tells_the_time_in_utc(start_host: Any) -> None:
    [answer] = start_host(folder=EXAMPLES / "system").call("system:get_timestamp")
    assert answer["value"].endswith("+00:00")
    assert answer["value"][:4] == time.strftime("%Y", time.gmtime())


def test_async_tools_run_and_leave_nothing_running(start_host: Any) -> None:
    host = start_host(
        "import asyncio\n"
        "async def double(a: int) -> int:\n"
        "    asyncio.get_running_loop().create_task(asyncio.sleep(60))\n"
        "    await asyncio.sleep(0)\n"
        "    return await asyncio.to_thread(lambda: a * 2)\n"
    )
    for number in (1, 2):
        assert host.call("tools:double", arguments={"a": number}) == [{"kind": "value", "value": number * 2}]


def test_the_context_carries_what_the_request_brought(start_host: Any) -> None:
    host = start_host(
        "from placet import ToolContext\n"
        "def show(context: ToolContext) -> dict:\n"
        "    c = context\n"
        "    c.progress(1, 2, 'half')\n"
        "    return dict(key=c.secrets['KEY'], token=c.authorization['google'], agent=c.caller.agent, user=c.user_id,\n"
        "                call=c.call_id, attempt=c.attempt, idem=c.idempotency_key, trace=c.trace_id, repr=repr(c),\n"
        "                left=c.seconds_left)\n"
    )
    progress, answer = host.call(
        "tools:show",
        secrets={"KEY": "sesame"},
        authorization={"google": "token"},
        caller={"agent": "bot", "user_id": "u1"},
        call_id="c1",
        attempt=2,
        idempotency_key="i1",
        trace_id="t1",
        timeout=9,
    )
    assert progress == {"kind": "progress", "done": 1, "total": 2, "message": "half"}
    told = answer["value"]
    assert "sesame" not in told.pop("repr")
    assert 8 < told.pop("left") <= 9
    assert told == {
        "key": "sesame",
        "token": "token",
        "agent": "bot",
        "user": "u1",
        "call": "c1",
        "attempt": 2,
        "idem": "i1",
        "trace": "t1",
    }


def test_content_travels_as_blocks(start_host: Any) -> None:
    host = start_host("from placet import Text\ndef say():\n    return [Text('a'), Text('b')]\n")
    [answer] = host.call("tools:say")
    assert answer == {"kind": "content", "content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]}


def test_an_unforeseen_exception_tells_the_caller_little_and_the_developer_its_name(start_host: Any) -> None:
    host = start_host("def go():\n    local_secret = 'sesame'\n    raise KeyError('lost')\n")
    [answer] = host.call("tools:go")
    assert answer == {
        "kind": "error",
        "type": "exception",
        "message": "The tool failed unexpectedly",
        "developer_message": "KeyError: 'lost'",
        **NOTHING_MORE,
    }


@pytest.mark.parametrize("raised", ["SystemExit(3)", "KeyboardInterrupt()", "MemoryError()", "RecursionError()"])
def test_no_exception_ends_the_host(start_host: Any, raised: str) -> None:
    host = start_host(f"def go():\n    raise {raised}\n")
    for _ in range(2):
        [answer] = host.call("tools:go")
        assert answer["type"] == "exception"
        assert answer["developer_message"].startswith(raised.split("(")[0])


def test_an_error_class_that_forgot_its_parent_is_an_exception(start_host: Any) -> None:
    host = start_host(
        "from placet import ToolError\n"
        "class Mine(ToolError):\n"
        "    def __init__(self): pass\n"
        "def go():\n    raise Mine()\n"
    )
    [answer] = host.call("tools:go")
    assert (answer["type"], answer["developer_message"]) == ("exception", "Mine")


@pytest.mark.parametrize(
    ("returned", "reason"),
    [
        ("float('nan')", "the result is not a finite number"),
        ("{'a': [float('inf')]}", "the result at /a/0 is not a finite number"),
        ("object()", "the result is an object, which has no JSON form"),
        ("'x' * 200", "more than 100 bytes"),
    ],
)
def test_a_result_that_json_cannot_carry_is_a_bad_result(start_host: Any, returned: str, reason: str) -> None:
    [answer] = start_host(f"def go():\n    return {returned}\n").call("tools:go", max_answer=100)
    assert (answer["kind"], answer["type"], answer["developer_message"]) == ("error", "bad_result", reason)


@pytest.mark.parametrize(
    ("entrypoint", "reason"),
    [
        ("nonesuch:go", "ModuleNotFoundError: No module named 'nonesuch'"),
        ("tools:nonesuch", "the module tools has no function 'nonesuch'"),
        ("tools", "the module tools has no function ''"),
        ("tools:NUMBER", "the module tools has no function 'NUMBER'"),
        ("os:getcwd", "the module os is not in the toolkit's folder"),
        ("", "ValueError: Empty module name"),
    ],
)
def test_an_entry_point_that_leads_nowhere_is_load_failed(start_host: Any, entrypoint: str, reason: str) -> None:
    [answer] = start_host("NUMBER = 1\n").call(entrypoint)
    assert (answer["type"], answer["message"]) == ("load_failed", "The tool could not be loaded")
    assert answer["developer_message"] == reason


def test_a_module_that_breaks_while_it_loads_is_load_failed(start_host: Any) -> None:
    [answer] = start_host("raise SystemExit('no')\n").call("tools:go")
    assert (answer["type"], answer["developer_message"]) == ("load_failed", "SystemExit: no")


def test_arguments_that_do_not_fit_are_an_error_that_names_them(start_host: Any) -> None:
    host = start_host("def go(a: int) -> None: ...\n")
    [answer] = host.call("tools:go", arguments={"a": "sesame"})
    assert (answer["type"], answer["developer_message"]) == ("tool_error", "a: Must be an integer")
    [answer] = host.call("tools:go")
    assert answer["type"] == "exception"
    assert "missing 1 required positional argument: 'a'" in answer["developer_message"]


def test_modules_are_loaded_once(start_host: Any) -> None:
    host = start_host("print('loading')\ndef go(): return 1\n")
    assert [frame["kind"] for frame in host.call("tools:go")] == ["log", "value"]
    assert [frame["kind"] for frame in host.call("tools:go")] == ["value"]


def test_what_is_printed_becomes_log_lines(start_host: Any) -> None:
    host = start_host(
        "import logging, os, sys, warnings\n"
        "def go():\n"
        "    print('one\\ntwo')\n"
        "    print('three', end='')\n"
        "    print('four', file=sys.stderr)\n"
        "    logging.getLogger('x').warning('five')\n"
        "    os.write(1, b'lost')\n"
        "    print('\\x00\\ud800')\n"
    )
    *logs, final = host.call("tools:go")
    assert final == {"kind": "value", "value": None}
    assert [(log["level"], log["message"]) for log in logs] == [
        ("info", "one"),
        ("info", "two"),
        ("warning", "four"),
        ("warning", "five"),
        ("info", "three\ufffd?"),
    ]


def test_threads_may_speak_at_the_same_time(start_host: Any) -> None:
    host = start_host(
        "import threading\n"
        "def go():\n"
        "    threads = [threading.Thread(target=lambda: [print('x' * 3000) for _ in range(20)]) for _ in range(8)]\n"
        "    [t.start() for t in threads]\n"
        "    [t.join() for t in threads]\n"
    )
    *logs, final = host.call("tools:go")
    assert final == {"kind": "value", "value": None}
    assert {frame["message"] for frame in logs} == {"x" * 3000}


def test_a_host_with_something_still_running_says_that_it_is_spent(start_host: Any) -> None:
    host = start_host(
        "import os, subprocess, threading, time\n"
        "def thread(): threading.Thread(target=time.sleep, args=(30,), daemon=True).start()\n"
        "def orphan():\n"
        "    subprocess.run(['sh', '-c', 'sleep 30 &'])\n"
        "def child(): subprocess.run(['true'])\n"
    )
    assert "is_spent" not in host.call("tools:child")[-1]
    assert host.call("tools:orphan")[-1]["is_spent"]
    assert start_host(folder=host.process.args[-1]).call("tools:thread")[-1]["is_spent"]


def test_a_tool_that_forks_and_comes_back_twice_is_answered_once(start_host: Any) -> None:
    host = start_host("import os\ndef fork():\n    return os.fork() and 1\ndef go(): return 2\n")
    assert [frame["kind"] for frame in host.call("tools:fork")] == ["value"]
    assert host.call("tools:go")[-1]["value"] == 2


def test_a_thread_that_outlives_its_call_speaks_into_no_other(start_host: Any) -> None:
    host = start_host(
        "import threading, time\n"
        "from placet import ToolContext\n"
        "def leak(context: ToolContext):\n"
        "    def later():\n"
        "        time.sleep(0.2)\n"
        "        context.log.info('from the first call')\n"
        "    threading.Thread(target=later, daemon=True).start()\n"
        "def wait():\n"
        "    time.sleep(0.5)\n"
    )
    host.call("tools:leak")
    assert [frame["kind"] for frame in host.call("tools:wait")] == ["value"]


def test_a_host_has_no_files_and_no_environment_of_its_parent(start_host: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DATABASE_URL", "sesame")
    host = start_host(
        "import os, resource, subprocess, sys\n"
        "def look():\n"
        "    count = 'import os; print(len(os.listdir(\"/proc/self/fd\")))'\n"
        "    children = subprocess.run([sys.executable, '-c', count],\n"
        "                              close_fds=False, capture_output=True, text=True).stdout\n"
        "    return dict(env=sorted(os.environ), std=[os.readlink(f'/proc/self/fd/{n}') for n in (0, 1, 2)],\n"
        "                children=int(children), core=resource.getrlimit(resource.RLIMIT_CORE),\n"
        "                session=os.getsid(0) == os.getpid(), cwd=os.getcwd() == os.environ['HOME'],\n"
        "                files=resource.getrlimit(resource.RLIMIT_NOFILE)[1])\n"
    )
    told = host.call("tools:look")[-1]["value"]
    assert told.pop("children") == 4  # its own three and the listing
    assert told == {
        "env": ["HOME", "LANG", "PATH", "PYTHONDONTWRITEBYTECODE", "TMPDIR"],
        "std": ["/dev/null"] * 3,
        "core": [0, 0],
        "session": True,
        "cwd": True,
        "files": 512,
    }


def test_a_toolkit_may_name_its_modules_like_placets_own_and_cannot_import_those(start_host: Any) -> None:
    host = start_host(
        "def go():\n"
        "    import placet.content\n"
        "    try:\n"
        "        import config.settings\n"
        "    except ModuleNotFoundError:\n"
        "        return 'none of ours'\n"
    )
    assert host.call("tools:go") == [{"kind": "value", "value": "none of ours"}]


def test_a_host_ends_when_the_other_end_closes(start_host: Any) -> None:
    host = start_host()
    host.sock.close()
    assert host.process.wait(5) == 0


def test_a_host_dies_with_its_parent_even_while_a_tool_runs(tmp_path: Path) -> None:
    (tmp_path / "tools.py").write_text(
        "import os, pathlib, time\n"
        "def go():\n"
        "    pathlib.Path(__file__).with_name('pid').write_text(str(os.getpid()))\n"
        "    time.sleep(60)\n"
    )
    parent = (
        "import os, socket, subprocess, sys, time\n"
        "ours, theirs = socket.socketpair()\n"
        f"process = subprocess.Popen({child.command('placet.host', '--folder', str(tmp_path))!r} + ['--fd', "
        "str(theirs.fileno())], pass_fds=[theirs.fileno()])\n"
        f"ours.recv(100); ours.sendall({frames.pack({'entrypoint': 'tools:go', 'arguments': {}})!r})\n"
        f"while not os.path.exists({str(tmp_path / 'pid')!r}): time.sleep(0.01)\n"
        "os.dup2(ours.fileno(), 99); os.kill(os.getpid(), 9)\n"
    )
    subprocess.run([sys.executable, "-c", parent], env=child.environment(tmp_path), timeout=20, check=False)
    stat = Path(f"/proc/{(tmp_path / 'pid').read_text()}/stat")
    for _ in range(200):
        if not stat.exists() or stat.read_text().split()[2] == "Z":
            return
        time.sleep(0.01)
    pytest.fail("the host outlived its parent")


def test_a_frame_arrives_whole_however_it_was_cut() -> None:
    reading, writing = os.pipe()
    packed = frames.pack({"kind": "value", "value": "ä" * 100})
    for start in range(0, len(packed), 7):
        os.write(writing, packed[start : start + 7])
    os.close(writing)
    assert frames.read(reading) == {"kind": "value", "value": "ä" * 100}
    assert frames.read(reading) is None
    os.close(reading)
    assert json.loads(packed[4:]) == {"kind": "value", "value": "ä" * 100}


def test_starting_a_host_loads_neither_asyncio_nor_django(start_host: Any) -> None:
    host = start_host(
        "import sys\ndef go(): return sorted({'asyncio', 'django', 'uuid', 'logging'} & set(sys.modules))\n"
    )
    assert host.call("tools:go") == [{"kind": "value", "value": []}]
