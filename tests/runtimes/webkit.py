"""A tool behind a test's own server, and what it would take to run it once."""

from __future__ import annotations

from collections.abc import Iterator
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

from execution.cancel import Cancel
from registry.risk import RiskLevel
from registry.toolspec import RetrySpec, RuntimeSpec
from tests.services.toolserver import ToolServer, toolserver

if TYPE_CHECKING:
    from execution.runtimes.base import Invocation

TRACEPARENT = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"


@pytest.fixture
def server(settings: Any) -> Iterator[ToolServer]:
    settings.PLACET_EGRESS_ALLOW = ["127.0.0.0/8"]
    with toolserver() as running:
        yield running


def invocation(kind: str, endpoint: str, *, output_schema: Any = None, **fields: Any) -> Invocation:
    """One attempt of a tool that needs no database; `fields` are the invocation's."""
    from execution.runtimes.base import Invocation

    tool = SimpleNamespace(
        tool_id="Lab.Thing@1.0.0",
        flat_name="Lab_Thing",
        risk=RiskLevel.MEDIUM,
        capabilities=("data.read", "network.read"),
        output_schema={} if output_schema is None else output_schema,
        runtime=RuntimeSpec(
            type=kind,
            dispatch="queue",
            timeout=5.0,
            retry=RetrySpec(max_attempts=3, backoff=1.0, max_backoff=20.0, jitter="full"),
            options={"endpoint": endpoint},
        ),
    )
    given: dict[str, Any] = {
        "arguments": {"query": "äöü", "n": 1},
        "call_id": "call-1",
        "attempt": 2,
        "agent": "demo",
        "timeout": 5.0,
        "cancel": Cancel(),
        "on_news": lambda news: None,
        **fields,
    }
    return Invocation(tool=tool, **given)  # type: ignore[arg-type]  # all of a tool that a runtime looks at
