"""Callers that wait, give up or misbehave: they hear at once, tools stop at once, and memory stays bounded."""

from __future__ import annotations

import http.client
import json
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, suppress
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from tests.stories.laboratory import Laboratory, Reply, lines, together
from tests.stories.product import wait_until
from tests.stories.restartable import is_running

pytestmark = pytest.mark.story

AT_ONCE = 0.5  # seconds; a door that only looked now and then would need up to 1
MAX_RSS = 512 * 1024  # kB


def seconds_after(moment: str) -> float:
    return time.time() - datetime.fromisoformat(moment).timestamp()


def hosts_of(runner: int) -> list[int]:
    """The processes in which a worker's process runs tools."""
    found = []
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit() and is_running(int(folder.name)):
            try:
                parent = int((folder / "stat").read_text().rpartition(")")[2].split()[1])
                if parent == runner and b"placet.host" in (folder / "cmdline").read_bytes():
                    found.append(int(folder.name))
            except OSError:
                continue
    return found


def test_a_running_call_that_is_cancelled_stops_at_once(laboratory: Laboratory) -> None:
    ledger = laboratory.ledger()
    call = laboratory.post("Slow", ledger=str(ledger), seconds=15)
    assert wait_until(lambda: lines(ledger) == 1)
    hosts = hosts_of(laboratory.runner_of(call["id"]))
    assert hosts
    with ThreadPoolExecutor(1) as thread:
        waiting = thread.submit(laboratory.get, call["id"], wait=20)
        time.sleep(0.2)
        asked = time.monotonic()
        reply = laboratory.send("POST", f"/api/calls/{call['id']}/cancel/")
        assert reply.status in (202, 200)  # asked to stop, or stopped by the time of the answer
        assert reply.body["cancel_requested"] is True
        after = waiting.result()
    assert time.monotonic() - asked < 2
    assert (after["state"], after["error"]["code"]) == ("cancelled", "canceled")
    assert wait_until(lambda: not any(map(is_running, hosts)), 2)
    assert laboratory.events(call["id"])[-2:] == ["call.cancel_requested", "call.cancelled"]
    assert laboratory.send("POST", f"/api/calls/{call['id']}/cancel/").status == 409


def test_a_queued_call_that_is_cancelled_never_runs(laboratory: Laboratory) -> None:
    ledger = laboratory.ledger()
    with laboratory.frozen_workers():
        call = laboratory.post("Ring", ledger=str(ledger))
        reply = laboratory.send("POST", f"/api/calls/{call['id']}/cancel/")
        assert (reply.status, reply.body["state"]) == (200, "cancelled")
    assert laboratory.post("Ring", wait=20, ledger=str(laboratory.ledger()))["state"] == "succeeded"
    assert lines(ledger) == 0


def test_who_waits_for_a_call_hears_of_its_end_at_once(laboratory: Laboratory) -> None:
    """With `?wait=`, with `Prefer: wait` and at the door of OXP; off the beat on which doors look for themselves."""
    late: list[float] = []
    call = laboratory.post("SlowButSafe", ledger=str(laboratory.ledger()), seconds=1.4)
    after = laboratory.get(call["id"], wait=20)
    late.append(seconds_after(after["finished_at"]))
    after = laboratory.post("SlowButSafe", wait=20, ledger=str(laboratory.ledger()), seconds=1.4)
    late.append(seconds_after(after["finished_at"]))
    reply = laboratory.oxp("SlowButSafe", call_id="waiting", ledger=str(laboratory.ledger()), seconds=1.4)
    told = time.time()
    assert reply.body["result"]["value"] == "done"
    (row,) = laboratory.send("GET", "/api/calls/?search=waiting").body["results"]
    late.append(told - datetime.fromisoformat(row["finished_at"]).timestamp())
    assert sorted(late)[1] < AT_ONCE, late


def test_who_does_not_wait_long_is_told_where_to_ask(laboratory: Laboratory) -> None:
    began = time.monotonic()
    headers = {"Prefer": "wait=0.5"}
    body = {"tool_id": "Lab.SlowButSafe", "input": {"ledger": str(laboratory.ledger()), "seconds": 3}}
    reply = laboratory.send("POST", "/api/calls/", body, headers=headers)
    assert 0.4 < time.monotonic() - began < 2.5
    assert (reply.status, reply.body["state"] in ("queued", "running")) == (202, True)
    assert laboratory.send("GET", reply.headers["location"] + "?wait=20").body["state"] == "succeeded"


def test_hostile_bodies_and_answers_stay_within_bounds(laboratory: Laboratory) -> None:
    def sent(body: bytes) -> Reply:
        return laboratory.send("POST", "/tools/call", body)

    echo = b'{"request": {"tool_id": "Lab.Echo", "input": {"value": %b}}}'
    hostile = {
        echo % (b'"' + b"x" * 990_000 + b'"'): {200},
        echo % (b'"' + b"x" * 1_100_000 + b'"'): {413},
        echo % (b"[" * 100_000 + b"]" * 100_000): {400, 413},
        echo % (b"[" + b"0," * 400_000 + b"0]"): {200, 400, 413},
        echo % (b"1" * 500_000): {400},
        echo % (b'{"a":' * 100_000 + b"1" + b"}" * 100_000): {400, 413},
        echo % (b'{"a": 1, "a": 2}'): {400},
        echo % b'"\\ud800"': {400},
    }
    for body, expected in hostile.items():
        began = time.monotonic()
        replies = together(8, *[lambda body=body: sent(body)] * 8)
        assert {reply.status for reply in replies} <= expected, (body[:100], {reply.status for reply in replies})
        assert time.monotonic() - began < 20
    for size in (900_000, 1_200_000, 60_000_000):
        told = laboratory.oxp("Big", size=size).body["result"]
        assert told["success"] == (size < 1_000_000)
    assert laboratory.is_healthy()
    assert {pid: peak for pid, peak in peaks(laboratory).items() if peak > MAX_RSS} == {}


def test_a_body_in_chunks_is_read_and_one_that_breaks_off_does_nothing(laboratory: Laboratory) -> None:
    """As a program sends what it does not know the length of."""

    def sent(path: str, *chunks: bytes, is_broken: bool = False) -> tuple[int, Any]:
        connection = http.client.HTTPConnection("127.0.0.1", laboratory.product.port, timeout=20)
        with closing(connection):
            connection.putrequest("POST", path)
            given = {"OXP-API-Key": laboratory.key, "Content-Type": "application/json", "Prefer": "wait=20"}
            for name, value in (given | {"Transfer-Encoding": "chunked"}).items():
                connection.putheader(name, value)
            connection.endheaders()
            with suppress(BrokenPipeError):  # what is too large is refused before all of it was sent
                for chunk in chunks:
                    connection.send(b"%x\r\n%b\r\n" % (len(chunk), chunk))
                connection.send(b"no number\r\n" if is_broken else b"0\r\n\r\n")
            response = connection.getresponse()
            return response.status, json.loads(response.read())

    asked = b'{"tool_id": "Lab.Echo", "input": {"value": "%b"}}'
    status, told = sent("/api/calls/", *(bytes([byte]) for byte in asked % b"in chunks"))
    assert (status, told["result"]) == (200, "in chunks")
    assert sent("/tools/call", b'{"request": ', asked % b"at a door", b"}")[0] == 200
    for path in ("/api/calls/", f"/api/calls/{told['id']}/cancel/"):
        assert (sent(path, *[b" " * 100_000] * 10, b" ")[0], sent(path, is_broken=True)[0]) == (413, 400)
    assert sent("/api/calls/", (asked % b"cut off")[:-1], is_broken=True)[0] == 400


def peaks(laboratory: Laboratory) -> dict[int, int]:
    """The most memory that each process of the web and the worker ever had, in kB."""
    found: dict[int, int] = {}
    for pid in [*laboratory.processes("granian"), *laboratory.processes("celery")]:
        status: Any = dict(line.split(":", 1) for line in Path(f"/proc/{pid}/status").read_text().splitlines())
        found[pid] = int(status["VmHWM"].split()[0])
    return found
