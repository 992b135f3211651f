"""The lab, its agent and its approvers, as the tests of execution know them; and a desk of tools of every shape."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.execution.conftest import (  # noqa: F401
    ana,
    at_once,
    ben,
    call,
    caller,
    lab,
    lab_folder,
    ledger,
    people,
    unsent,
)
from tests.protocols.conftest import hands, publish, robot, stranger, toolkits  # noqa: F401

if TYPE_CHECKING:
    from policy.agents import NewAgent
    from tests.protocols.toolkits import Hands, Publish


@pytest.fixture
def key(publish: Publish, robot: NewAgent, hands: Hands) -> str:  # noqa: F811
    """Of an agent that may call the desk, some of whose tools give back what they were given."""
    from execution.runtimes.base import RunResult
    from tests.mcp.desk import DESK

    publish(DESK)
    for name in ("Echo", "Transfer", "Route", "Slow"):
        hands.overrides[f"Desk_{name}"] = lambda invocation: RunResult(value=dict(invocation.arguments))
    return robot.key
