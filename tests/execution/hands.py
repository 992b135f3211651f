"""Hands for the lab's tools that do what a test says, and remember what they were given."""

from collections.abc import Callable
from typing import Any

from execution.errors import CallError, ErrorCode
from execution.runtimes.base import Invocation, RunResult

Run = Callable[[Invocation], RunResult]


class Hands:
    def __init__(self) -> None:
        self.runs: list[Invocation] = []
        self.does: Run = lambda invocation: RunResult(value=1)

    def run(self, invocation: Invocation) -> RunResult:
        self.runs.append(invocation)
        return self.does(invocation)


def fails(code: ErrorCode = ErrorCode.EXECUTION_FAILED, message: str = "It is down", **more: Any) -> Run:
    def run(invocation: Invocation) -> RunResult:
        raise CallError(code, message, **more)

    return run


def works(invocation: Invocation) -> RunResult:
    return RunResult(value=1)
