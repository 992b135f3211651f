"""A server of tools by hand, no session left over from before, and ways to run one of its tools."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from execution.errors import CallError
from execution.runtimes import mcpsession
from execution.runtimes.base import RunResult
from execution.runtimes.mcp import McpRuntime
from tests.runtimes.webkit import invocation
from tests.services.mcpserver import FakeMcp, fake_mcp


@pytest.fixture
def fresh(settings: Any) -> Iterator[None]:
    settings.PLACET_EGRESS_ALLOW = ["127.0.0.0/8"]
    mcpsession._sessions.clear()
    yield
    mcpsession._sessions.clear()


@pytest.fixture
def server() -> Iterator[FakeMcp]:
    with fake_mcp() as running_server:
        yield running_server


def run(endpoint: str, tool: str = "thing", *, schema: Any = None, **fields: Any) -> RunResult:
    made = invocation("mcp", endpoint, **fields)
    made.tool.runtime.options["tool"] = tool
    made.tool.tool_id = f"Lab.{tool}@1.0.0"  # type: ignore[misc]
    made.tool.output_schema = schema  # type: ignore[misc]
    return McpRuntime().run(made)


def failed(endpoint: str, **fields: Any) -> CallError:
    with pytest.raises(CallError) as error:
        run(endpoint, **fields)
    return error.value
