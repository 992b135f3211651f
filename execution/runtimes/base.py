"""Runtime, Invocation, RunResult: what a hand gets and what it gives back."""

import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from registry.toolspec import ToolSpec


@dataclass(frozen=True, slots=True, kw_only=True)
class Invocation:
    """All that a runtime needs for one attempt, and nothing else."""

    tool: ToolSpec
    arguments: Mapping[str, Any]
    call_id: str
    attempt: int
    agent: str
    user_id: str = ""
    trace_id: str = ""
    secrets: Mapping[str, str] = field(default_factory=dict)
    authorization: Mapping[str, str] = field(default_factory=dict)
    timeout: float = 30.0
    max_answer: int = 1_000_000
    cancel: "Cancel"
    on_news: Callable[[Mapping[str, Any]], None]  # progress and log lines, as they come

    def __repr__(self) -> str:
        return f"Invocation({self.tool.tool_id}, attempt {self.attempt})"


@dataclass(frozen=True, slots=True, kw_only=True)
class RunResult:
    """What the tool returned: any JSON value, or content blocks."""

    value: Any = None
    content: tuple[Mapping[str, Any], ...] = ()


class Cancel:
    """A request to stop, heard by whoever runs: an event, and one function to call when it is set."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._wake: Callable[[], None] | None = None
        self._is_set = False
        self.reason = ""

    @property
    def is_set(self) -> bool:
        return self._is_set

    def set(self, reason: str = "cancelled") -> None:
        with self._lock:
            if self._is_set:
                return
            self._is_set, self.reason = True, reason
            wake = self._wake
        if wake is not None:
            wake()

    def on_set(self, wake: Callable[[], None] | None) -> None:
        """Call `wake` when cancelled, at once if that has happened already; None takes it back."""
        with self._lock:
            self._wake = wake
            is_late = self._is_set and wake is not None
        if is_late and wake is not None:
            wake()


class Runtime(Protocol):
    """Runs one invocation. Knows no agents, no policy and no database."""

    def run(self, invocation: Invocation) -> RunResult:
        """The result, or CallError; returns soon after `timeout` or `cancel` whatever the tool does."""
        ...
