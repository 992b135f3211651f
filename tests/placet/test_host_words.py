"""What a tool says while it runs is bounded: lines are cut, and of progress the last word is told."""

import json
from typing import Any


def test_a_flood_of_words_is_cut(start_host: Any) -> None:
    host = start_host(
        "from placet import ToolContext\n"
        "def go(context: ToolContext):\n"
        "    for number in range(5000):\n"
        "        print('x' * 9000)\n"
        "        context.progress(number)\n"
        "def endless():\n"
        "    for _ in range(3000): print('x' * 9000, end='')\n"
    )
    told = host.call("tools:go")
    logs = [frame for frame in told if frame["kind"] == "log"]
    assert len(logs) == 201
    assert logs[-1]["message"] == "More was written than is kept"
    assert max(len(log["message"]) for log in logs) == 4001
    assert 1001 <= len([frame for frame in told if frame["kind"] == "progress"]) <= 1060
    assert len(host.call("tools:endless")) == 2


def test_however_much_a_tool_reports_its_last_report_is_told(start_host: Any) -> None:
    host = start_host(
        "import time\n"
        "from placet import ToolContext\n"
        "def go(context: ToolContext):\n"
        "    for number in range(10_000): context.progress(number + 1, 10_000, f'step {number}')\n"
        "    time.sleep(1.1)\n"
        "    context.progress(10_001)\n"
        "    context.progress(10_002)\n"
        "    context.progress(10_003)\n"
    )
    *reports, final = host.call("tools:go")
    done = [report["done"] for report in reports]
    assert final == {"kind": "value", "value": None}
    assert done[:1000] == list(range(1, 1001))
    assert done[-2:] == [10_001, 10_003]  # one as soon as its time has come, and the last


def test_many_long_words_cost_the_words_and_not_the_answer(start_host: Any) -> None:
    host = start_host(
        "from placet import ToolContext\n"
        "def go(context: ToolContext):\n"
        "    for number in range(1_000):\n"
        "        context.progress(number, 1_000, '\\x01' * 9_000)\n"
        "    print('one more line')\n"
        "    print('and another')\n"
    )
    *told, final = host.call("tools:go")
    assert final == {"kind": "value", "value": None}
    assert sum(len(json.dumps(frame)) for frame in told) < 4_000_000  # what the other end takes of one call
    reports = [frame for frame in told if frame["kind"] == "progress"]
    assert len(reports) == 1_000
    assert [reports[0]["message"][:1], reports[-1]["message"]] == ["\x01", ""]
    assert [frame["message"] for frame in told if frame["kind"] == "log"] == ["More was written than is kept"]
