"""A tool of a manifest, imported, published and run by its runtime, for the tests of the sandboxes."""

from pathlib import Path
from typing import Any

from execution.errors import CallError, Failure
from execution.runtimes import runtime_for
from execution.runtimes.base import Invocation, RunResult
from execution.runtimes.cancel import Cancel
from registry.manifests import import_folder
from registry.publishing import publish
from registry.resolution import resolve
from registry.toolref import ToolRef
from registry.toolspec import ToolSpec
from tests.runtimes import sandboxlabs


def found(name: str) -> ToolSpec:
    """The tool of this name."""
    ref = ToolRef.parse(name)
    assert ref is not None
    tool = resolve(ref)
    assert isinstance(tool, ToolSpec)
    return tool


class Sandbox:
    """A folder in which one tool after the other is tried."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._count = 0
        self.news: list[str] = []

    def tool(self, made: dict[str, Any], files: dict[str, bytes] | None = None) -> ToolSpec:
        """Imports a toolkit of this one tool."""
        self._count += 1
        folder = self._folder / str(self._count)
        folder.mkdir()
        for name, content in (files or {}).items():
            (folder / name).write_bytes(content)
        sandboxlabs.toolkit(folder, made, name=f"Box{self._count}")
        for result in import_folder(folder, by=None):
            publish(result.version, by=None)
        return found(f"Box{self._count}.{made['name']}")

    def invocation(self, tool: ToolSpec, **fields: Any) -> Invocation:
        given: dict[str, Any] = {
            "arguments": {},
            "call_id": "c-1",
            "attempt": 1,
            "agent": "demo",
            "timeout": 20.0,
            "cancel": Cancel(),
            "on_news": lambda news: self.news.append(news["message"]),
            **fields,
        }
        return Invocation(tool=tool, **given)

    def run(self, tool: ToolSpec, **fields: Any) -> RunResult:
        return runtime_for(tool).run(self.invocation(tool, **fields))

    def error(self, tool: ToolSpec, **fields: Any) -> CallError:
        """How a run fails that must fail."""
        try:
            result = self.run(tool, **fields)
        except CallError as error:
            return error
        raise AssertionError(f"it ran: {result}")

    def failure(self, tool: ToolSpec, **fields: Any) -> Failure:
        return self.error(tool, **fields).failure
