"""The bridge at the running product: what the product says unasked arrives, and its restarts are lived through."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.placet.stub import INITIALIZE, INITIALIZED, MODERN, Desk, request
from tests.stories.laboratory import Laboratory
from tests.stories.product import ROOT, wait_until

pytestmark = pytest.mark.story

# No story here is about a worker that is lost; on a busy machine a short lease would tell such a one.
SETTINGS = {"PLACET_LEASE": "30"}

ALLOW = """
import django; django.setup()
from django.core.management import call_command
from guardian.shortcuts import assign_perm
from policy.models import Agent
from registry.models import Toolkit
call_command("import_toolkit", sys.argv[1], publish=True, reviewer="admin", verbosity=0, stdout=sys.stderr)
assign_perm("registry.call_toolkit", Agent.objects.get(name="tester").user, Toolkit.objects.get(name=sys.argv[2]))
"""
FIXTURES = ROOT / "tests" / "conformance" / "toolkits"


@pytest.fixture
def desk(laboratory: Laboratory) -> Iterator[Desk]:
    file = laboratory.folder / "key"
    file.write_text(laboratory.key)
    file.chmod(0o600)
    opened = Desk(laboratory.product.port, "--key-file", str(file))
    yield opened
    opened.end()


def hear(desk: Desk, id: Any) -> Any:
    """The answer to a request, whatever else is said in between."""
    while (message := desk.hear(60)).get("id") != id:
        assert "method" in message, message
    return message


def echo(desk: Desk, id: Any, **more: Any) -> Any:
    desk.send(request("tools/call", id, name="Lab_Echo", arguments={"value": "hello"}, **more))
    return hear(desk, id)


def connect(desk: Desk) -> None:
    desk.send(request("initialize", 0, **INITIALIZE))
    assert hear(desk, 0)["result"]["protocolVersion"] == "2025-11-25"
    desk.send(INITIALIZED)


def test_a_client_of_the_older_era_hears_that_tools_were_published(laboratory: Laboratory, desk: Desk) -> None:
    connect(desk)
    assert "result" in echo(desk, 1)
    laboratory.script(ALLOW, str(FIXTURES / "basic"), "basic")
    while (message := desk.hear(30)).get("method") != "notifications/tools/list_changed":
        assert "id" not in message, message
    desk.send(request("tools/list", 2))
    assert "basic_echo" in {tool["name"] for tool in hear(desk, 2)["result"]["tools"]}


def test_a_client_of_the_modern_era_hears_it_on_the_stream_that_it_asked_for(
    laboratory: Laboratory, desk: Desk
) -> None:
    desk.send(request("subscriptions/listen", "news", _meta=MODERN, notifications={"toolsListChanged": True}))
    assert desk.hear(30)["method"] == "notifications/subscriptions/acknowledged"
    laboratory.script(ALLOW, str(FIXTURES / "slow"), "slow")
    assert desk.hear(30)["method"] == "notifications/tools/list_changed"
    desk.send({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": "news"}})
    desk.send(request("tools/list", 2, _meta=MODERN))
    assert "slow_compute" in {tool["name"] for tool in hear(desk, 2)["result"]["tools"]}


@pytest.mark.parametrize("era", ["modern", "legacy"])
def test_after_a_crash_of_the_web_the_same_client_goes_on(laboratory: Laboratory, desk: Desk, era: str) -> None:
    more = {"_meta": MODERN} if era == "modern" else {}
    if era == "legacy":
        connect(desk)
    assert "result" in echo(desk, "before", **more)
    laboratory.kill("granian")
    during = echo(desk, "during", **more)
    assert "result" in during or during["error"]["code"] == -32603, during
    assert wait_until(laboratory.is_healthy, 60)
    assert "result" in echo(desk, "after", **more)


def test_a_session_that_was_ended_elsewhere_is_opened_again(laboratory: Laboratory, desk: Desk) -> None:
    connect(desk)
    assert "result" in echo(desk, 1)
    laboratory.query("DELETE FROM execution_mcpsession")
    assert "result" in echo(desk, 2)
    assert wait_until(lambda: b"the session was gone and has been opened again" in desk.told), desk.told
