"""What some tests need of a machine; where it is missing, they are named at the end of the run instead of hidden."""

from __future__ import annotations

import functools
import shutil
import subprocess
from collections.abc import Callable, Iterable
from pathlib import Path

import pytest


def _chromium() -> str:
    return "" if Path("/usr/bin/chromium").exists() else "there is no /usr/bin/chromium"


def _curl() -> str:
    return "" if shutil.which("curl") else "there is no curl"


def _container() -> str:
    engines = [engine for engine in ("podman", "docker") if shutil.which(engine)]
    for engine in engines:
        answer = subprocess.run([engine, "info"], capture_output=True, timeout=20)
        if answer.returncode == 0:
            return ""
    return f"{' and '.join(engines)} did not answer" if engines else "there is neither podman nor docker"


# Each returns why the thing is missing, or nothing.
CHECKS: dict[str, Callable[[], str]] = {"chromium": _chromium, "container": _container, "curl": _curl}


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
