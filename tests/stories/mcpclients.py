"""The official Python client at the running product: in both eras, over HTTP and through the bridge."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, TypeVar

import httpx2
import mcp_types as types
from mcp import Client, StdioServerParameters
from mcp.client.extension import ClaimContext, ClientExtension, ResultClaim
from mcp.client.streamable_http import streamable_http_client

from tests.stories.product import ROOT

TASKS = "io.modelcontextprotocol/tasks"
MODERN, LEGACY = "2026-07-28", "2025-11-25"
Told = TypeVar("Told")


@dataclass(frozen=True)
class Way:
    """How a client gets to Placet."""

    version: str
    is_bridged: bool

    def __str__(self) -> str:
        return f"{'bridge' if self.is_bridged else 'http'}-{self.version}"


WAYS = [Way(version, is_bridged) for version in (MODERN, LEGACY) for is_bridged in (False, True)]


@dataclass(frozen=True)
class Place:
    """A Placet and the key of an agent."""

    url: str
    key: str
    key_file: Path

    def visit(self, way: Way, use: Callable[[Client], Awaitable[Told]], **options: Any) -> Told:
        """What `use` makes of a connected client."""

        async def run() -> Told:
            if way.is_bridged:
                arguments = ["-m", "placet", "mcp", "--url", self.url, "--key-file", str(self.key_file)]
                server = StdioServerParameters(command=sys.executable, args=arguments, cwd=ROOT)
                return await use_of(server)
            async with httpx2.AsyncClient(headers={"Authorization": f"Bearer {self.key}"}, timeout=60) as http:
                return await use_of(streamable_http_client(f"{self.url}/mcp", http_client=http))

        async def use_of(server: Any) -> Told:
            mode = "auto" if way.version == MODERN else "legacy"
            async with Client(server, mode=mode, read_timeout_seconds=60, **options) as client:
                assert client.protocol_version == way.version
                return await use(client)

        return asyncio.run(run())


class CreatedTask(types.Result):
    """What a call is answered with that goes on as a task."""

    result_type: Literal["task"] = "task"
    task_id: str
    status: str


class _Get(types.Request[Any, Any]):
    method: str = "tasks/get"
    name_param = "taskId"


class _State(types.Result):
    status: str
    result: dict[str, Any] | None = None


class Tasks(ClientExtension):
    """The tasks extension as a client has it: it asks until there is a result."""

    identifier = TASKS

    def __init__(self) -> None:
        self.seen: list[str] = []

    def claims(self) -> list[ResultClaim[Any]]:
        return [ResultClaim(result_type="task", model=CreatedTask, resolve=self._follow)]

    async def _follow(self, created: CreatedTask, context: ClaimContext) -> types.CallToolResult:
        self.seen.append(created.status)
        for _ in range(100):
            request = _Get(params={"taskId": created.task_id})
            state = await context.session.send_request(request, _State)
            if state.result is not None:
                self.seen.append(state.status)
                return types.CallToolResult.model_validate(state.result)
            await asyncio.sleep(0.1)
        raise AssertionError("the task did not end")
