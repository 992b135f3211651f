"""The toolkit Lab for the sandboxed runtimes: the same five tools as a module and as an image."""

import json
from pathlib import Path
from typing import Any

import wasmtime

TEXT = {"type": "string"}
VALUE = {"type": "object", "properties": {"value": TEXT}, "required": ["value"], "additionalProperties": False}
NOTHING = {"type": "object", "additionalProperties": False}


def toolkit(folder: Path, *tools: dict[str, Any], name: str = "Lab") -> None:
    """Writes a manifest with these tools."""
    manifest = {
        "apiVersion": "placet.dev/v1",
        "kind": "Toolkit",
        "metadata": {"name": name, "version": "1.0.0", "title": name, "description": "Made for tests."},
        "spec": {"tools": list(tools)},
    }
    (folder / "toolkit.json").write_text(json.dumps(manifest))


def tool(name: str, *, risk: str = "low", **runtime: Any) -> dict[str, Any]:
    return {
        "name": name,
        "title": name,
        "description": name,
        "risk": risk,
        "input": VALUE if name == "Echo" else NOTHING,
        "runtime": runtime,
    }


def wasm(folder: Path) -> None:
    (folder / "lab.wasm").write_bytes(wasmtime.wat2wasm((Path(__file__).parent / "wasm" / "lab.wat").read_text()))
    shared = {"type": "wasm", "module": "lab.wasm"}
    toolkit(
        folder,
        tool("Echo", **shared, entrypoint="echo"),
        tool("Fail", **shared, entrypoint="fail"),
        tool("Hang", **shared, entrypoint="hang", fuel=10**15),
        tool("Die", **shared, entrypoint="die"),
        tool("Flood", **shared, entrypoint="flood"),
    )
