"""Workers that pull, as real processes against the whole product: one dies in the middle of a call."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.stories.laboratory import LEASE, SWEEP, Laboratory, at_work, send_signal
from tests.stories.prepared import Prepared
from tests.stories.product import ROOT, wait_until

pytestmark = pytest.mark.story

EXAMPLE = ROOT / "examples" / "warehouse"
PUBLISH = """
import django; django.setup()
from django.core.management import call_command
call_command("import_toolkit", sys.argv[1], publish=True, verbosity=0, stdout=sys.stderr)
call_command("create_agent", "picker", serve=["Warehouse"], json=True)
call_command("create_agent", "buyer", call=["Warehouse"], json=True)
"""


class Warehouse:
    """The product, and the example's workers with their common ledger."""

    def __init__(self, laboratory: Laboratory, folder: Path) -> None:
        self.laboratory = laboratory
        self._key = folder / "key"
        self.ledger = folder / "ledger"
        picker, buyer = laboratory.script(PUBLISH, str(EXAMPLE / "warehouse.yaml")).splitlines()
        self._key.write_text(json.loads(picker)["key"])
        laboratory.key = json.loads(buyer)["key"]

    @contextmanager
    def worker(self) -> Iterator[subprocess.Popen[bytes]]:
        """The example, in a process of its own; its session is open when this begins."""
        before = self.sessions()
        url = f"http://127.0.0.1:{self.laboratory.product.port}"
        command: list[str | Path] = [sys.executable, EXAMPLE / "worker.py", "--url", url, "--key-file", self._key]
        environment = os.environ | {"PYTHONPATH": str(ROOT)}
        with subprocess.Popen(
            [*command, "--ledger", self.ledger], env=environment, stderr=subprocess.DEVNULL
        ) as process:
            try:
                assert wait_until(lambda: self.sessions() > before)
                yield process
            finally:
                process.kill()

    def sessions(self) -> int:
        return int(self.laboratory.query("SELECT COUNT(*) FROM execution_session")[0][0])

    def lines(self) -> list[str]:
        return self.ledger.read_text().splitlines() if self.ledger.exists() else []

    def begun(self, part: str) -> list[int]:
        """The processes that began to work on a part."""
        return [int(line.split()[-1]) for line in self.lines() if f" {part} begun " in line]

    def done(self, part: str) -> list[int]:
        return [int(line.split()[-1]) for line in self.lines() if f" {part} done " in line]

    def post(self, tool: str, **arguments: Any) -> str:
        body = {"tool_id": f"Warehouse.{tool}", "input": arguments}
        reply = self.laboratory.send("POST", "/api/calls/", body, headers={"Prefer": "wait=0"})
        assert reply.status in (200, 202), reply
        return str(reply.body["id"])

    def picked_up(self, part: str) -> int:
        """The process that works on a part, once one does."""
        assert wait_until(lambda: bool(self.begun(part)))
        return self.begun(part)[0]


@pytest.fixture(scope="module")
def warehouse(
    servers: Mapping[str, str], prepared: Prepared, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Warehouse]:
    folder = tmp_path_factory.mktemp("pulling")
    for laboratory in at_work(folder, servers, prepared):
        yield Warehouse(laboratory, folder)


@pytest.fixture
def two(warehouse: Warehouse) -> Iterator[list[subprocess.Popen[bytes]]]:
    with ExitStack() as workers:
        yield [workers.enter_context(warehouse.worker()) for _ in range(2)]


def test_a_call_that_a_worker_pulls_is_answered_to_the_caller_who_waits(
    warehouse: Warehouse, two: list[subprocess.Popen[bytes]]
) -> None:
    asked = {"tool_id": "Warehouse.Locate", "input": {"part": "bolt"}, "call_id": "bolt-1"}
    told = warehouse.laboratory.send("POST", "/tools/call", {"request": asked}).body["result"]
    assert told["value"]["worker"] in {str(process.pid) for process in two}
    asked = {"tool_id": "Warehouse.Locate", "input": {"part": "unicorn"}}
    failed = warehouse.laboratory.send("POST", "/tools/call", {"request": asked}).body["result"]
    assert failed["error"]["message"] == "There are no unicorns here"


def test_a_worker_killed_in_the_middle_of_a_call_leaves_it_to_the_other_who_finishes_it_once(
    warehouse: Warehouse, two: list[subprocess.Popen[bytes]]
) -> None:
    call = warehouse.post("Locate", part="washer", takes=LEASE + 1)
    victim = warehouse.picked_up("washer")
    send_signal(victim, signal.SIGKILL)
    after = warehouse.laboratory.ended(call, seconds=4 * LEASE + SWEEP + 20)
    (survivor,) = [process.pid for process in two if process.pid != victim]
    assert (after["state"], after["result"]["worker"]) == ("succeeded", str(survivor))
    assert (warehouse.begun("washer"), warehouse.done("washer")) == ([victim, survivor], [survivor])
    assert [attempt["status"] for attempt in after["attempts"]] == ["lost", "succeeded"]
    told = warehouse.laboratory.events(call)
    assert (told.count("call.started"), told.count("call.requeued"), told.count("call.succeeded")) == (2, 1, 1)


def test_a_killed_worker_leaves_what_must_not_run_twice_to_a_person(
    warehouse: Warehouse, two: list[subprocess.Popen[bytes]]
) -> None:
    call = warehouse.post("Ship", part="piano", to="Ana", takes=30)
    victim = warehouse.picked_up("piano")
    send_signal(victim, signal.SIGKILL)
    after = warehouse.laboratory.ended(call, seconds=LEASE + SWEEP + 20)
    assert (after["state"], after["error"]["code"]) == ("unknown", "outcome_unknown")
    assert (warehouse.begun("piano"), warehouse.done("piano")) == ([victim], [])


def test_workers_outlive_the_death_of_the_web_and_go_on(
    warehouse: Warehouse, two: list[subprocess.Popen[bytes]]
) -> None:
    call = warehouse.post("Locate", part="gear", takes=4)
    warehouse.picked_up("gear")
    warehouse.laboratory.kill("granian")
    assert wait_until(warehouse.laboratory.is_healthy, 30)
    after = warehouse.laboratory.ended(call, seconds=40)
    assert (after["state"], len(warehouse.done("gear")) >= 1) == ("succeeded", True)
    again = warehouse.post("Locate", part="cog")
    assert warehouse.laboratory.ended(again, seconds=40)["state"] == "succeeded"


def test_a_call_that_ends_while_nobody_hears_its_worker_succeeds_and_ran_once(warehouse: Warehouse) -> None:
    with warehouse.worker() as process:
        call = warehouse.post("Ship", part="organ", to="Eva", takes=1)
        warehouse.picked_up("organ")
        warehouse.laboratory.restart(after=LEASE + 1)
        after = warehouse.laboratory.ended(call, seconds=30)
    assert (after["state"], [attempt["status"] for attempt in after["attempts"]]) == ("succeeded", ["succeeded"])
    assert warehouse.begun("organ") == warehouse.done("organ") == [process.pid]


def test_a_worker_that_is_told_to_go_finishes_its_call_and_gives_its_session_back(warehouse: Warehouse) -> None:
    before = warehouse.sessions()
    with warehouse.worker() as process:
        call = warehouse.post("Locate", part="spring", takes=2)
        assert warehouse.picked_up("spring") == process.pid
        process.send_signal(signal.SIGTERM)
        assert process.wait(timeout=15) == 0
    after = warehouse.laboratory.ended(call, seconds=5)
    assert (after["state"], after["result"]["worker"]) == ("succeeded", str(process.pid))
    assert warehouse.sessions() == before


def test_calls_wait_while_nobody_serves_the_toolkit_and_run_once_somebody_does(warehouse: Warehouse) -> None:
    calls = [warehouse.post("Locate", part=f"pin-{number}") for number in range(5)]
    assert warehouse.laboratory.get(calls[0])["state"] == "queued"
    with warehouse.worker():
        for call in calls:
            assert warehouse.laboratory.ended(call, seconds=20)["state"] == "succeeded"
    assert all(len(warehouse.done(f"pin-{number}")) == 1 for number in range(5))
