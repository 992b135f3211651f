"""The example web service through the public door, from POST /tools/call to the rows that people read."""

from __future__ import annotations

import sys
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from django.test import Client

from tests.protocols.wire import bearer, call, get
from tests.services.server import free_port, running, scratch

if TYPE_CHECKING:
    from django.contrib.auth.models import User

    from policy.agents import NewAgent

EXAMPLE = Path(__file__).parents[2] / "examples" / "http_service"


@pytest.fixture(scope="module")
def service() -> Iterator[int]:
    """The example's service in a process of its own; its port."""
    port = free_port()

    def is_ready() -> bool:
        try:
            urllib.request.urlopen(f"http://127.0.0.1:{port}/", data=b"{}", timeout=1)
        except urllib.error.HTTPError as error:
            with error:
                return error.code == 404
        except OSError:
            return False
        return True

    with scratch("service") as (folder, reaper):
        command: list[str | Path] = [sys.executable, EXAMPLE / "service.py", "--port", str(port)]
        with running(command, reaper=reaper, log=folder / "log", is_ready=is_ready):
            yield port


@pytest.fixture
def robot(service: int, tmp_path: Path, people: dict[str, User]) -> NewAgent:
    """An agent that may call the example's toolkits, published with the port of this run."""
    from policy import agents
    from registry.manifests import import_manifest
    from registry.publishing import publish

    for name in ("words.yaml", "stock.yaml"):
        manifest = tmp_path / name
        manifest.write_text((EXAMPLE / name).read_text().replace(":8321", f":{service}"))
        publish(import_manifest(manifest, by=people["author"]).version, by=people["author"])
    return agents.create("robot", actor="shell", call=["Words", "Stock"])


@pytest.fixture
def opened(settings: Any) -> None:
    settings.PLACET_EGRESS_ALLOW = ["127.0.0.0/8"]


@pytest.mark.usefixtures("at_once", "opened")
def test_an_http_tool_is_called_and_its_attempt_shows_the_traffic(
    client: Client, robot: NewAgent, people: dict[str, User]
) -> None:
    answer = call(client, robot, "Words.Count", {"text": "one two three"})
    assert answer.status_code == 200
    assert answer.json()["result"]["value"] == {"words": 3, "characters": 13}
    (row,) = get(client, "/api/calls/", robot).json()["results"]
    shown = get(client, f"/api/calls/{row['id']}/", robot).json()
    (attempt,) = shown["attempts"]
    assert (attempt["status"], attempt["upstream_status"]) == ("succeeded", "200")
    assert attempt["sent"] > len('{"text":"one two three"}')
    assert attempt["received"] > 0
    people["author"].is_staff = people["author"].is_superuser = True
    people["author"].save()
    client.force_login(people["author"])
    page = client.get(f"/calls/{row['id']}/").content.decode()
    assert "Network" in page
    assert "sent," in page


@pytest.mark.usefixtures("at_once", "opened")
def test_an_external_tool_is_called_by_the_contract_and_a_repeated_call_id_reserves_once(
    client: Client, robot: NewAgent
) -> None:
    first = call(client, robot, "Stock.Reserve", {"item": "apple", "count": 2}, call_id="reserve-1").json()["result"]
    again = call(client, robot, "Stock.Reserve", {"item": "apple", "count": 2}, call_id="reserve-1").json()["result"]
    assert first["value"] == again["value"]
    assert first["value"]["reservation"].startswith("R-")
    other = call(client, robot, "Stock.Reserve", {"item": "apple", "count": 1}, call_id="reserve-2").json()["result"]
    assert other["value"]["left"] == first["value"]["left"] - 1


@pytest.mark.usefixtures("at_once", "opened")
def test_what_a_service_says_about_its_failure_reaches_the_caller(client: Client, robot: NewAgent) -> None:
    result = call(client, robot, "Stock.Reserve", {"item": "plum", "count": 1}).json()["result"]
    assert result["success"] is False
    assert (result["error"]["message"], result["error"]["can_retry"]) == ("There is no plum here", False)


@pytest.mark.usefixtures("at_once")
@pytest.mark.parametrize(
    ("tool", "arguments"), [("Words.Count", {"text": "x"}), ("Stock.Reserve", {"item": "apple", "count": 1})]
)
def test_without_leave_nothing_on_this_machine_is_reached(
    client: Client, robot: NewAgent, tool: str, arguments: dict[str, Any]
) -> None:
    result = call(client, robot, tool, arguments).json()["result"]
    assert (result["success"], result["error"]["code"]) == (False, "runtime_policy_invalid")
    assert "loopback" in result["error"]["developer_message"]
    (row,) = client.get("/api/calls/", headers=bearer(robot.key)).json()["results"]
    (attempt,) = client.get(f"/api/calls/{row['id']}/", headers=bearer(robot.key)).json()["attempts"]
    assert (attempt["sent"], attempt["received"], attempt["upstream_status"]) == (0, 0, "")
    assert attempt["code"] == "runtime_policy_invalid"
