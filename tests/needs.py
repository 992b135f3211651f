"""What some tests need of a machine; where it is missing, they are named at the end of the run instead of hidden."""

from __future__ import annotations

import functools
import shutil
import subprocess
from collections.abc import Callable, Iterable
from pathlib import Path

import pytest

AXE = Path(__file__).parents[1] / "var" / "conformance" / "node_modules" / "axe-core" / "axe.min.js"


def _chromium() -> str:
    return "" if Path("/usr/bin/chromium").exists() else "there is no /usr/bin/chromium"


def _curl() -> str:
    return "" if shutil.which("curl") else "there is no curl"


def _podman() -> str:
    """Whether podman answers, and can be given an image without a registry."""
    if not shutil.which("podman"):
        return "there is no podman"
    if not Path("/bin/busybox").exists():
        return "there is no /bin/busybox to make an image of"
    answer = subprocess.run(["podman", "info"], capture_output=True, timeout=20)
    return "" if answer.returncode == 0 else "podman did not answer"


def _axe() -> str:
    """Installed with the MCP suite."""
    return "" if AXE.exists() else "there is no axe; make conformance installs it"


def _inspector() -> str:
    """Installed by `make conformance`, for tests themselves reach no network."""
    from tests.conformance import tools

    return tools.lack()


# Each returns why the thing is missing, or nothing.
CHECKS: dict[str, Callable[[], str]] = {
    "axe": _axe,
    "chromium": _chromium,
    "curl": _curl,
    "inspector": _inspector,
    "podman": _podman,
}


@functools.cache
def lack_of(name: str) -> str:
    """Why this machine does not have `name`, or an empty text; looked up once."""
    if name not in CHECKS:
        raise pytest.UsageError(f"needs({name!r}): unknown; tests/needs.py knows {', '.join(sorted(CHECKS))}")
    return CHECKS[name]()


def take_out(items: list[pytest.Item]) -> list[tuple[str, str]]:
    """Remove the tests that cannot run here; return each one's name and the reason."""
    not_run = []
    kept = []
    for item in items:
        if reason := "; ".join(filter(None, map(lack_of, _needs(item)))):
            not_run.append((item.nodeid, reason))
        else:
            kept.append(item)
    items[:] = kept
    return not_run


def _needs(item: pytest.Item) -> Iterable[str]:
    for mark in item.iter_markers("needs"):
        yield from mark.args
