"""The python runtime: a function in a process of its own, without our keys or our database."""

import os
import time
from functools import cached_property
from pathlib import Path
from typing import Any

from execution.errors import CallError, ErrorCode
from execution.runtimes import isolation
from execution.runtimes.base import Invocation, RunResult
from execution.runtimes.hosts import AnswerTooLarge, HostBusy, HostCancelled, HostCrashed, HostPool, HostTimeout
from execution.runtimes.oversize import too_large
from placet.host import NO_WALLS
from registry import sources

LOOK_EVERY = 1.0  # seconds between two looks whether a toolkit's source is still there
PATIENCE = 10.0  # seconds in which a host must be ready, however short the tool's own time is; not for the hurried


class PythonRuntime:
    """Runs `module:function` of a toolkit's frozen source in a tool host; a risky tool in a narrow one of its own."""

    @cached_property
    def _pool(self) -> HostPool:
        return HostPool()

    def __init__(self) -> None:
        self._folders: dict[str, tuple[Path, float]] = {}  # and until when it is taken to be there

    def _folder(self, digest: str) -> Path:
        """Where the source lies; unpacked again only if someone took it away."""
        folder, until = self._folders.get(digest, (None, 0.0))
        now = time.monotonic()
        if folder is None or (now >= until and not os.path.isdir(folder)):
            folder = sources.unpack(digest)
        if now >= until:
            self._folders[digest] = folder, now + LOOK_EVERY
        return folder

    def run(self, invocation: Invocation) -> RunResult:
        options, began = invocation.tool.runtime.options, time.monotonic()
        try:
            folder = self._folder(options["source"])
        except sources.SourceError as error:
            raise CallError(
                ErrorCode.RUNTIME_INVALID, "The tool's code cannot be used", developer_message=str(error), is_sent=False
            ) from error
        walls = isolation.walls_of(invocation.tool)
        request = {
            "entrypoint": options["entrypoint"],
            "arguments": dict(invocation.arguments),
            "secrets": dict(invocation.secrets),
            "authorization": dict(invocation.authorization),
            "caller": {"agent": invocation.agent, "user_id": invocation.user_id},
            "call_id": invocation.call_id,
            "idempotency_key": invocation.call_id,
            "attempt": invocation.attempt,
            "trace_id": invocation.trace_id,
            "timeout": invocation.timeout,
            "folder": walls.kept or None,
        }
        try:
            answer = self._pool.run(
                folder=folder,
                request=request,
                timeout=invocation.timeout,
                patience=None if invocation.is_hurried else max(invocation.timeout, PATIENCE),
                max_answer=invocation.max_answer,
                cancel=invocation.cancel,
                on_frame=invocation.on_news,
                walls=walls,
            )
        except HostTimeout as error:
            raise _timeout(invocation, is_sent=True) from error
        except HostCancelled as error:
            raise CallError(ErrorCode.CANCELED, "The call was cancelled while it ran") from error
        except HostBusy as error:
            if invocation.is_hurried and time.monotonic() - began >= invocation.timeout:
                raise _timeout(invocation, is_sent=error.is_started) from error
            raise CallError(
                ErrorCode.EXECUTION_FAILED, "The tool is too busy", can_retry=True, is_sent=error.is_started
            ) from error
        except AnswerTooLarge as error:
            raise too_large(invocation.max_answer) from error
        except HostCrashed as error:
            if error.returncode == NO_WALLS and not error.is_started:
                raise isolation.missing("process", "The tool's process could not be given its limits") from error
            raise CallError(
                ErrorCode.EXECUTION_FAILED,
                "The tool's process ended before it answered",
                developer_message=str(error),
                is_sent=error.is_started,
            ) from error
        return _result(answer)


def _timeout(invocation: Invocation, *, is_sent: bool) -> CallError:
    return CallError(
        ErrorCode.TIMEOUT,
        f"The tool did not answer within {invocation.timeout:g} s",
        details={"timeout_ms": round(invocation.timeout * 1000)},
        is_sent=is_sent,
    )


def _result(answer: dict[str, Any]) -> RunResult:
    match answer["kind"]:
        case "value":
            return RunResult(value=answer["value"])
        case "content":
            return RunResult(content=tuple(answer["content"]))
    raise CallError(
        ErrorCode.EXECUTION_FAILED,
        answer["message"],
        developer_message=answer.get("developer_message") or "",
        can_retry=bool(answer.get("can_retry")),
        additional_prompt_content=answer.get("additional_prompt_content") or "",
        retry_after_ms=answer.get("retry_after_ms"),
    )
