"""Isolation: which walls a tool gets, and the one failure for a wall that is not there."""

from functools import lru_cache
from pathlib import Path

from django.conf import settings

from execution.errors import CallError, ErrorCode
from execution.runtimes.walls import Walls
from placet.walls import openings
from registry.toolspec import ToolSpec


def walls_of(tool: ToolSpec) -> Walls:
    """Around the process of a Python tool: it reaches what it declares, and never our keys and our database."""
    return _walls(tuple(tool.capabilities), tool.toolkit, settings.PLACET_HOME, is_confined(tool))


@lru_cache(maxsize=1024)
def _walls(capabilities: tuple[str, ...], toolkit: str, home: Path, is_confined: bool) -> Walls:
    opened = openings(capabilities)
    kept = str(home / "kept" / toolkit) if {"reading", "writing"} & set(opened) else ""
    return Walls(opened, (str(home),), kept, is_confined)


def is_confined(tool: ToolSpec) -> bool:
    """Whether a tool gets a fresh, limited process for each call: what is risky enough to be reviewed is."""
    return tool.risk.needs_review


def missing(wall: str, why: str) -> CallError:
    """The tool was not called, and will not be called without it."""
    return CallError(
        ErrorCode.ISOLATION_MISSING,
        f"This installation cannot isolate the tool: {wall} is not available",
        developer_message=why,
        details={"isolation_mode": wall},
        is_sent=False,
    )
