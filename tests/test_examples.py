"""The examples' own page: every tool that it shows is there, takes the input that it says, and keeps the contract."""

import io
import json
import re
import shlex
import socket
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml
from django.core.management import call_command

from registry.schemas import compiled
from tests.services.server import free_port, running, scratch

EXAMPLES = Path(__file__).parents[1] / "examples"
PAGE = (EXAMPLES / "README.md").read_text()
ROWS = re.findall(r"^\| `(\w+\.\w+)` \| `(\{.*\})` \|$", PAGE, re.MULTILINE)
PROGRAM = r"^    \.venv/bin/python "
SERVICES = {port: start for start, port in re.findall(PROGRAM + r"(.*--port (\d+).*)$", PAGE, re.MULTILINE)}
CONFORM = re.findall(PROGRAM + r"manage\.py conform (.*)$", PAGE, re.MULTILINE)


def manifests() -> dict[str, dict[str, Any]]:
    """Every tool of a manifest among the examples, by its name."""
    found: dict[str, dict[str, Any]] = {}
    for path in [*EXAMPLES.glob("*/*.yaml"), *EXAMPLES.glob("*/*.yaml.in")]:
        manifest = yaml.safe_load(path.read_text())
        if manifest["kind"] == "Toolkit":
            found |= {f"{manifest['metadata']['name']}.{tool['name']}": tool for tool in manifest["spec"]["tools"]}
    return found


def test_every_runtime_that_needs_a_manifest_has_a_row() -> None:
    kinds = {manifests()[name]["runtime"]["type"] for name, _ in ROWS}
    assert kinds == {"http", "external", "grpc", "webhook-callback", "mcp", "wasm", "container"}


@pytest.mark.parametrize(("name", "given"), ROWS)
def test_an_input_to_try_fits_its_tool(name: str, given: str) -> None:
    assert compiled(manifests()[name]["input"]).violations(json.loads(given)) == []


def test_the_page_has_each_kind_of_service_judged() -> None:
    kinds = [re.findall(r"--runtime (\S+)", arguments) for arguments in CONFORM]
    assert sorted(kinds) == [["external"], ["grpc"], ["http"], ["webhook-callback"]]


@pytest.mark.parametrize("arguments", CONFORM)
def test_a_service_keeps_the_contract_as_the_page_asks_it(arguments: str, settings: Any) -> None:
    settings.PLACET_EGRESS_ALLOW = ["127.0.0.0/8"]
    (named,) = re.findall(r"127\.0\.0\.1:(\d+)", arguments)
    port = free_port()

    def is_ready() -> bool:
        with socket.socket() as probe:
            return probe.connect_ex(("127.0.0.1", port)) == 0

    program, *options = shlex.split(SERVICES[named].replace(named, str(port)))
    start: list[str | Path] = [sys.executable, EXAMPLES.parent / program, *options]
    out = io.StringIO()
    with scratch("service") as (folder, reaper), running(start, reaper=reaper, log=folder / "log", is_ready=is_ready):
        call_command("conform", *shlex.split(arguments.replace(named, str(port))), stdout=out)
        assert "Traceback" not in (folder / "log").read_text()
    assert " 0 failed" in out.getvalue()
