"""F45: a tool that fails 500 times is left alone after a few, and its neighbours hardly notice."""

from __future__ import annotations

import json
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from tests.services.toolserver import ToolServer, answer, as_json, toolserver
from tests.stories import hostile
from tests.stories.laboratory import Laboratory, at_work
from tests.stories.prepared import Prepared
from tests.stories.test_hostile_answers import PUBLISH

pytestmark = pytest.mark.story

CALLS = 500
AT_ONCE = 4
NEIGHBOURS = 1200  # calls of another tool meanwhile, equally many beside both, so that they can be compared
FAILURES = 10  # after so many in a row a breaker opens
BUDGET = 10 + CALLS / 10  # further attempts that its tool may cost; one more for each second that it takes


@pytest.fixture(scope="module")
def services() -> Iterator[ToolServer]:
    with toolserver() as server:
        server.answers["/works"] = as_json({"ok": True})
        server.answers["/breaks"] = answer("down", status=503)
        yield server


@pytest.fixture(scope="module")
def laboratory(
    servers: Mapping[str, str], prepared: Prepared, services: ToolServer, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Laboratory]:
    folder = tmp_path_factory.mktemp("failing")
    # A call that meets the open breaker only in the worker would else wait for it to close again: half a minute.
    again = {"retry": {"maxAttempts": 3, "backoff": "50ms", "maxBackoff": "1s", "jitter": "none"}}
    runtimes = {
        name: {"type": "http", "endpoint": f"{services.url}/{name.lower()}", **again} for name in ("Works", "Breaks")
    }
    toolkit = hostile.write(folder / "shop", "Shop", runtimes)
    for laboratory in at_work(folder, {**servers, "PLACET_EGRESS_ALLOW": "127.0.0.0/8"}, prepared):
        laboratory.key = json.loads(laboratory.script(PUBLISH, str(toolkit)))["key"]
        yield laboratory


def beside(laboratory: Laboratory, tool: str) -> tuple[Counter[tuple[int, str]], float, float]:
    """500 calls of a tool; how they ended, what the 99th of 100 calls of a neighbour took meanwhile, and how long."""

    def call(_: int) -> tuple[int, str]:
        reply = laboratory.send("POST", "/tools/call", {"request": {"tool_id": f"Shop.{tool}", "input": {}}})
        result: Any = reply.body.get("result", reply.body)
        return reply.status, str(result.get("success", ""))

    def neighbour() -> list[float]:
        took: list[float] = []
        for _ in range(NEIGHBOURS):
            began = time.perf_counter()
            reply = laboratory.oxp("Echo", value=1)
            took.append(time.perf_counter() - began)
            assert reply.status == 200
        return sorted(took)

    began = time.monotonic()
    with ThreadPoolExecutor(AT_ONCE + 1) as pool:
        watching = pool.submit(neighbour)
        ends = Counter(pool.map(call, range(CALLS)))
        took = watching.result()
    return ends, took[len(took) * 99 // 100], time.monotonic() - began


def test_f45_a_tool_that_always_fails_costs_others_nothing(laboratory: Laboratory, services: ToolServer) -> None:
    ends, quiet, _ = beside(laboratory, "Works")
    assert ends == {(200, "True"): CALLS}
    ends, troubled, seconds = beside(laboratory, "Breaks")
    assert sum(ends.values()) == CALLS
    assert all(status in (200, 503) and success != "True" for status, success in ends), ends
    sent = sum(asked.path == "/breaks" for asked in services.asked)
    trials = 1 + seconds / 30
    assert FAILURES <= sent <= FAILURES + AT_ONCE + BUDGET + seconds + 3 * trials
    assert sent < CALLS / 2
    assert laboratory.query("SELECT state FROM execution_breaker") == [("open",)]
    assert troubled < 2 * quiet, (troubled, quiet)
