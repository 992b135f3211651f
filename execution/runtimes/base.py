"""Runtime, Invocation, RunResult: what a hand gets and what it gives back."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from execution.cancel import Cancel
from execution.credentials import NO_CREDENTIALS, Credentials
from execution.returnaddress import ReturnAddress
from execution.traffic import NO_TRAFFIC, Traffic
from registry.toolspec import ToolSpec

DEFAULT_NAMESPACE = "default"


@dataclass(frozen=True, slots=True, kw_only=True)
class Invocation:
    """All that a runtime needs for one attempt, and nothing else."""

    tool: ToolSpec
    arguments: Mapping[str, Any]
    call_id: str
    attempt: int
    agent: str
    user_id: str = ""
    task_id: str = ""  # the caller's own name for what it is doing
    namespace: str = DEFAULT_NAMESPACE
    trace_id: str = ""
    traceparent: str = ""  # W3C Trace Context, ready to be sent
    secrets: Mapping[str, str] = field(default_factory=dict)
    authorization: Mapping[str, str] = field(default_factory=dict)
    credentials: Credentials = NO_CREDENTIALS  # what Placet brings to the tool
    timeout: float = 30.0
    is_hurried: bool = False  # it is the caller's own time, and so counts before the tool's process is ready, too
    max_answer: int = 1_000_000
    cancel: Cancel
    on_news: Callable[[Mapping[str, Any]], None]  # progress and log lines, as they come
    return_address: ReturnAddress | None = None  # where a tool that answers later sends its answer
    pinned: Callable[[str], str] = str  # a digest of what the tool is upstream, to the one it had at first use

    def __repr__(self) -> str:
        return f"Invocation({self.tool.tool_id}, attempt {self.attempt})"


@dataclass(frozen=True, slots=True, kw_only=True)
class RunResult:
    """What the tool returned: any JSON value, or content blocks."""

    value: Any = None
    content: tuple[Mapping[str, Any], ...] = ()
    traffic: Traffic = NO_TRAFFIC
    keeps_order: bool = False  # the caller gets the keys of objects in the tool's order


class AnswersLater(Exception):
    """The tool took the call and has no answer yet; what was sent and received so far."""

    def __init__(self, traffic: Traffic = NO_TRAFFIC) -> None:
        super().__init__("the tool answers later")
        self.traffic = traffic


class Runtime(Protocol):
    """Runs one invocation. Knows no agents, no policy and no database."""

    def run(self, invocation: Invocation) -> RunResult:
        """The result, or CallError; returns soon after `timeout` or `cancel` whatever the tool does.

        AnswersLater, if the tool has taken the call and was told where to send its answer.
        """
        ...
