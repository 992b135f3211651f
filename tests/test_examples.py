"""The examples' own page: every tool that it shows is there, and takes the input that it says."""

import json
import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from registry.schemas import compiled

EXAMPLES = Path(__file__).parents[1] / "examples"
ROWS = re.findall(r"^\| `(\w+\.\w+)` \| `(\{.*\})` \|$", (EXAMPLES / "README.md").read_text(), re.MULTILINE)


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
