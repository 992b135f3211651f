"""Sandboxed tools through the public door: their answers, their limits, and a wall that is missing."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from django.test import Client

from tests.protocols.wire import call, get
from tests.runtimes import sandboxlabs

if TYPE_CHECKING:
    from django.contrib.auth.models import User

    from policy.agents import NewAgent

pytestmark = pytest.mark.usefixtures("at_once")
EXAMPLES = Path(__file__).parents[2] / "examples"


@pytest.fixture
def robot(tmp_path: Path, people: dict[str, User]) -> NewAgent:
    """An agent that may call the example's module, and a container whose image nobody has."""
    from policy import agents
    from registry.manifests import import_manifest
    from registry.publishing import publish

    image = "localhost/none@sha256:" + "0" * 64
    sandboxlabs.toolkit(tmp_path, sandboxlabs.tool("Run", type="container", image=image), name="Boxed")
    for manifest in (EXAMPLES / "wasm_tool" / "letters.yaml", tmp_path / "toolkit.json"):
        publish(import_manifest(manifest, by=people["author"]).version, by=people["author"])
    return agents.create("robot", actor="shell", call=["Letters", "Boxed"])


def attempts(client: Client, robot: NewAgent) -> Any:
    (row,) = get(client, "/api/calls/", robot).json()["results"]
    return get(client, f"/api/calls/{row['id']}/", robot).json()["attempts"]


def test_a_module_answers_at_the_door(client: Client, robot: NewAgent) -> None:
    answer = call(client, robot, "Letters.Rot13", {"text": "Uryyb"})
    assert answer.json()["result"]["value"] == "Hello"
    (attempt,) = attempts(client, robot)
    assert attempt["status"] == "succeeded"
    assert attempt["sent"] > attempt["received"] > 0


@pytest.mark.parametrize(("tool", "input"), [("Letters.Rot13", {"text": "Uryyb"}), ("Boxed.Run", {})])
def test_a_wall_that_is_missing_is_said_at_the_door_and_nothing_runs(
    client: Client, robot: NewAgent, monkeypatch: pytest.MonkeyPatch, tool: str, input: dict[str, Any]
) -> None:
    from execution.runtimes import RUNTIMES, container, engine

    def missing(wanted: str = "") -> None:
        raise engine.EngineMissing("there is no podman; there is no docker")

    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    monkeypatch.setattr(engine, "find", missing)
    monkeypatch.setitem(RUNTIMES, "container", container.ContainerRuntime())
    monkeypatch.setattr("execution.runtimes.process.subprocess.Popen", None)
    answer = call(client, robot, tool, input).json()
    assert answer["result"]["success"] is False
    assert "cannot isolate" in answer["result"]["error"]["message"]
    (attempt,) = attempts(client, robot)
    assert (attempt["status"], attempt["code"]) == ("failed", "isolation_unavailable")
