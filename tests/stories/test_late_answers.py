"""Tools that answer later, with the whole product at work: pushed, asked for, and over the death of every process."""

from __future__ import annotations

import json
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.services.server import free_port, running, scratch
from tests.stories.laboratory import SWEEP, Laboratory, at_work
from tests.stories.prepared import Prepared
from tests.stories.product import ROOT, wait_until

pytestmark = pytest.mark.story

EXAMPLE = ROOT / "examples" / "webhook_service"
PUBLISH = """
import django; django.setup()
from django.core.management import call_command
for manifest in sys.argv[1:]:
    call_command("import_toolkit", manifest, publish=True, verbosity=0, stdout=sys.stderr)
call_command("create_agent", "reporter", call_all=True, json=True)
"""


@contextmanager
def service(*options: str) -> Iterator[int]:
    """The example's service in a process of its own; its port."""
    port = free_port()

    def is_ready() -> bool:
        try:
            urllib.request.urlopen(f"http://127.0.0.1:{port}/reports/nothing", timeout=1)
        except urllib.error.HTTPError as error:
            with error:
                return error.code == 404
        except OSError:
            return False
        return True

    with scratch("reports") as (folder, reaper):
        command: list[str | Path] = [sys.executable, EXAMPLE / "service.py", "--port", str(port), *options]
        with running(command, reaper=reaper, log=folder / "log", is_ready=is_ready):
            yield port


SERVICES = {"Quick": ("--takes", "0.3"), "Shy": ("--takes", "0.3", "--no-push"), "Slow": ("--takes", "6")}


@pytest.fixture(scope="module")
def laboratory(
    servers: Mapping[str, str], prepared: Prepared, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Laboratory]:
    """The product, three services that take their time, and an agent that may call them."""
    folder = tmp_path_factory.mktemp("late")
    with ExitStack() as services:
        manifests = []
        for name, options in SERVICES.items():
            port = services.enter_context(service(*options))
            text = (EXAMPLE / "reports.yaml").read_text().replace(":8341", f":{port}").replace("Reports", name)
            manifest = folder / f"{name}.yaml"
            manifest.write_text(text)
            manifests.append(str(manifest))
        for product in at_work(folder, {**servers, "PLACET_EGRESS_ALLOW": "127.0.0.0/8"}, prepared):
            product.key = json.loads(product.script(PUBLISH, *manifests))["key"]
            yield product


def write(laboratory: Laboratory, toolkit: str, text: str = "a late answer") -> Any:
    body = {"tool_id": f"{toolkit}.Write", "input": {"text": text}}
    reply = laboratory.send("POST", "/api/calls/", body, headers={"Prefer": "wait=0"})
    assert reply.status in (200, 202), reply
    return reply.body


def test_a_pushed_answer_reaches_the_caller_who_waits(laboratory: Laboratory) -> None:
    asked = {"tool_id": "Quick.Write", "input": {"text": "one two three"}, "call_id": "quick-1"}
    told = laboratory.send("POST", "/tools/call", {"request": asked}).body["result"]
    assert told["value"] == {"words": 3, "longest": "three"}


def test_an_answer_that_is_not_pushed_is_asked_for(laboratory: Laboratory) -> None:
    call = write(laboratory, "Shy")
    after = laboratory.ended(call["id"], seconds=20)
    assert (after["state"], after["result"]["longest"]) == ("succeeded", "answer")
    assert laboratory.events(call["id"])[-3:] == ["call.waiting_callback", "call.answered", "call.succeeded"]
    assert after["attempts"][0]["status"] == "succeeded"


def test_a_waiting_call_outlives_every_process_of_ours(laboratory: Laboratory) -> None:
    call = write(laboratory, "Slow")
    laboratory.until(call["id"], "waiting_callback")
    laboratory.kill("celery")
    laboratory.kill("granian")
    assert wait_until(laboratory.is_healthy, 30)
    after = laboratory.ended(call["id"], seconds=20 + SWEEP)
    assert (after["state"], after["result"]["words"]) == ("succeeded", 3)
    assert [attempt["number"] for attempt in after["attempts"]] == [1]
    assert laboratory.events(call["id"]).count("call.succeeded") == 1


def test_a_waiting_call_can_be_cancelled(laboratory: Laboratory) -> None:
    call = write(laboratory, "Slow")
    laboratory.until(call["id"], "waiting_callback")
    cancelled = laboratory.send("POST", f"/api/calls/{call['id']}/cancel/")
    assert cancelled.status == 200, cancelled
    assert laboratory.ended(call["id"], seconds=5)["state"] == "cancelled"
    assert wait_until(lambda: laboratory.events(call["id"])[-1] == "call.callback_refused", 20)
    assert laboratory.get(call["id"])["state"] == "cancelled"
