"""F41, F42, I25: whatever a tool answers, web and worker stay within 512 MB and go on."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.runtimes import sandboxlabs
from tests.stories import hostile
from tests.stories.hostile import LARGE, SMALL
from tests.stories.laboratory import Laboratory, at_work, together
from tests.stories.prepared import Prepared
from tests.stories.test_waiting import MAX_RSS, peaks

pytestmark = pytest.mark.story

AT_ONCE = 2
PUBLISH = """
import django; django.setup()
from django.core.management import call_command
for folder in sys.argv[1:]:
    call_command("import_toolkit", folder, publish=True, verbosity=0, stdout=sys.stderr)
call_command("create_agent", "victim", call_all=True, json=True)
"""
Call = Callable[..., Any]


@pytest.fixture(scope="module")
def laboratory(
    servers: Mapping[str, str], prepared: Prepared, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Laboratory]:
    """The product with every hostile service; no breaker, so that each call gets its answer."""
    folder = tmp_path_factory.mktemp("hostile")
    opened = {"PLACET_EGRESS_ALLOW": "127.0.0.0/8", "PLACET_BREAKER_FAILURES": "0"}
    with hostile.services() as runtimes:
        web = hostile.write(folder / "web", "Hostile", runtimes)
        talker = {"Talk": {"type": "wasm", "module": "talk.wasm", "fuel": 10**15}}
        module = hostile.write(folder / "module", "Module", talker, talk=hostile.talker())
        for laboratory in at_work(folder, {**servers, **opened}, prepared):
            laboratory.key = json.loads(laboratory.script(PUBLISH, str(web), str(module)))["key"]
            yield laboratory


@pytest.fixture
def call(laboratory: Laboratory) -> Call:
    def make(tool: str, kind: str = "") -> Any:
        body = {"tool_id": tool, "input": {"kind": kind}}
        reply = laboratory.send("POST", "/api/calls/", body, headers={"Prefer": "wait=40"})
        assert reply.status == 200, reply.body
        return reply.body

    return make


def within_bounds(laboratory: Laboratory) -> None:
    assert laboratory.is_healthy()
    found = peaks(laboratory)
    assert found
    assert {pid: peak for pid, peak in found.items() if peak > MAX_RSS} == {}


@pytest.mark.parametrize("tool", ["Http", "External", "Webhook", "Mcp", "Grpc"])
def test_no_answer_of_a_service_takes_more_memory_or_time_than_it_may(
    laboratory: Laboratory, call: Call, tool: str
) -> None:
    for kind in SMALL:
        answers = together(AT_ONCE, *[lambda kind=kind: call(f"Hostile.{tool}", kind)] * AT_ONCE)
        codes = {(answer["state"], (answer["error"] or {}).get("code")) for answer in answers}
        expected = {("succeeded", None)} if kind in ("text", "escapes", "secrets") else codes
        assert codes == expected, (kind, [answer["error"] for answer in answers])
        assert codes <= {("succeeded", None), ("failed", "execution_failed")}, kind
    for kind in LARGE:
        began = time.monotonic()
        answers = together(AT_ONCE, *[lambda kind=kind: call(f"Hostile.{tool}", kind)] * AT_ONCE)
        assert {answer["state"] for answer in answers} == {"failed"}, kind
        assert {answer["error"]["details"].get("limit") for answer in answers} == {1_000_000}, kind
        assert time.monotonic() - began < 15, kind  # cut at the limit, not at the timeout
    within_bounds(laboratory)


def test_a_module_that_writes_without_end_is_cut(laboratory: Laboratory, call: Call) -> None:
    for answer in together(AT_ONCE, *[lambda: call("Module.Talk")] * AT_ONCE):
        assert (answer["state"], answer["error"]["details"]["limit"]) == ("failed", 1_000_000)
    within_bounds(laboratory)


@pytest.mark.needs("podman")
def test_a_container_that_writes_without_end_is_cut(laboratory: Laboratory, call: Call, tmp_path: Path) -> None:
    yes = {"type": "container", "image": sandboxlabs.image(), "command": ["yes"]}
    folder = hostile.write(tmp_path / "box", "Box", {"Yes": yes})
    laboratory.script(PUBLISH.replace('"victim"', '"other"'), str(folder))
    laboratory.script(GRANT)
    for answer in together(2, *[lambda: call("Box.Yes")] * 2):
        assert (answer["state"], answer["error"]["details"].get("limit")) == ("failed", 1_000_000), answer["error"]
    within_bounds(laboratory)


GRANT = """
import django; django.setup()
from guardian.shortcuts import assign_perm
from policy.models import Agent
from registry.models import Toolkit
assign_perm("registry.call_toolkit", Agent.objects.get(name="victim").user, Toolkit.objects.get(name="Box"))
"""
