"""The example MCP server through the public door: tools of another server, called, judged and recorded as our own."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from socket import create_connection
from typing import TYPE_CHECKING, Any

import pytest
from django.test import Client

from tests.protocols.wire import call, get
from tests.services.server import free_port, running, scratch

if TYPE_CHECKING:
    from django.contrib.auth.models import User

    from policy.agents import NewAgent

EXAMPLE = Path(__file__).parents[2] / "examples" / "mcp_server"
pytestmark = pytest.mark.usefixtures("at_once")


@pytest.fixture(scope="module")
def port() -> Iterator[int]:
    """Where the example listens, in a process of its own."""
    number = free_port()

    def is_ready() -> bool:
        with suppress(OSError), create_connection(("127.0.0.1", number), timeout=1):
            return True
        return False

    with scratch("mcp") as (folder, reaper):
        command: list[str | Path] = [sys.executable, EXAMPLE / "server.py", "--port", str(number)]
        with running(command, reaper=reaper, log=folder / "log", is_ready=is_ready):
            yield number


@pytest.fixture
def robot(port: int, tmp_path: Path, people: dict[str, User], settings: Any) -> NewAgent:
    from policy import agents
    from registry.manifests import import_manifest
    from registry.publishing import publish

    settings.PLACET_EGRESS_ALLOW = ["127.0.0.0/8"]
    manifest = tmp_path / "letters.yaml"
    manifest.write_text((EXAMPLE / "letters.yaml").read_text().replace(":8331", f":{port}"))
    publish(import_manifest(manifest, by=people["author"]).version, by=people["author"])
    return agents.create("robot", actor="shell", call=["UpstreamLetters"])


def test_values_texts_and_pictures_come_back_and_the_attempt_shows_its_traffic(client: Client, robot: NewAgent) -> None:
    counted = call(client, robot, "UpstreamLetters.Count", {"text": "two words"}).json()["result"]
    assert counted["value"] == {"letters": 8, "words": 2}
    assert call(client, robot, "UpstreamLetters.Shout", {"text": "hey"}).json()["result"]["value"] == "HEY"
    assert call(client, robot, "UpstreamLetters.Spell", {"text": "abc"}).json()["result"]["value"] == "a-b-c"
    (picture,) = call(client, robot, "UpstreamLetters.Pixel", {}).json()["result"]["value"]
    assert (picture["type"], picture["mimeType"]) == ("image", "image/png")
    first = get(client, "/api/calls/", robot).json()["results"][-1]
    (attempt,) = get(client, f"/api/calls/{first['id']}/", robot).json()["attempts"]
    assert (attempt["status"], attempt["upstream_status"]) == ("succeeded", "200")
    assert min(attempt["sent"], attempt["received"]) > 100


def test_what_the_tool_says_about_its_failure_reaches_the_caller(client: Client, robot: NewAgent) -> None:
    error = call(client, robot, "UpstreamLetters.Shout", {"text": " "}).json()["result"]["error"]
    assert "There is nothing to shout" in error["message"]
    refused = call(client, robot, "UpstreamLetters.Shout", {"text": 5})
    assert refused.status_code == 422
