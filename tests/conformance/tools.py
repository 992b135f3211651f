"""The programs that `make conformance` installs, and how to call them."""

from __future__ import annotations

import json
import platform
import subprocess
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PLACE = ROOT / "var" / "conformance" / "node_modules"
_MACHINES = {"x86_64": "x64", "aarch64": "arm64"}


def lack() -> str:
    """Why they cannot be called here, or nothing."""
    if not _node().exists():
        return "there is no MCP suite; make conformance installs it"
    return ""


def command(name: str, *arguments: str) -> list[str]:
    """A program of npm's under the Node that came with it."""
    return [str(_node()), str(PLACE / ".bin" / name), *arguments]


def run(arguments: Sequence[str], seconds: float) -> subprocess.CompletedProcess[str]:
    return subprocess.run(arguments, cwd=ROOT, capture_output=True, text=True, timeout=seconds)


def version_of(package: str) -> str:
    return str(json.loads((PLACE / package / "package.json").read_text())["version"])


def _node() -> Path:
    return PLACE / f"node-linux-{_MACHINES.get(platform.machine(), 'unknown')}" / "bin" / "node"
