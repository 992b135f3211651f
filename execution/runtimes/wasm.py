"""The wasm runtime: a module of the toolkit's frozen source, in a child process that can reach nothing."""

import contextlib
import importlib.util
import os
import signal
import sys
import time
from pathlib import Path
from typing import Any

import orjson

from execution.errors import CallError, ErrorCode
from execution.runtimes import complaints, isolation, wasmhost
from execution.runtimes.base import Invocation, RunResult
from execution.runtimes.oversize import too_large
from execution.runtimes.process import Answer, Cancelled, Conversation, Overrun, TooMuch
from execution.runtimes.sizes import in_bytes
from execution.runtimes.wasmhost import Verdict
from execution.runtimes.wasmreply import read
from execution.traffic import Traffic
from registry import sources

PATIENCE = 10.0  # seconds the child may take to be ready; they are not the tool's, but a hurried caller's
_TIME_IS_UP = -signal.SIGALRM


class WasmRuntime:
    """One request on standard input, one reply on standard output: checks 52 to 56 of the Tool Contract."""

    def run(self, invocation: Invocation) -> RunResult:
        if importlib.util.find_spec("wasmtime") is None:
            raise isolation.missing("wasm", "The package wasmtime is not installed")
        module = _module(invocation)
        request = orjson.dumps(request_of(invocation))
        answer = _answer(invocation, module, request)
        if answer.returncode == Verdict.DONE:
            complaints.tell(answer.errors, invocation)
            return read(answer.output, invocation, Traffic(len(request), len(answer.output)))
        raise _failure(answer, invocation)


def request_of(invocation: Invocation) -> dict[str, Any]:
    """What the module reads: the arguments as a text, and as much about the tool as it may know."""
    tool, options = invocation.tool, invocation.tool.runtime.options
    request = {
        "contract_version": "v1",
        "namespace": invocation.namespace,
        "tool": tool.flat_name,
        "input": orjson.dumps(dict(invocation.arguments)).decode(),
        "capabilities": list(tool.capabilities),
        "risk_level": tool.risk.word,
        "runtime": {
            "entrypoint": options["entrypoint"],
            "max_memory_bytes": in_bytes(options["memory"]),
            "fuel": options["fuel"],
            "enable_wasi": True,
        },
    }
    credentials = invocation.credentials
    if credentials.profile:
        request["auth"] = {"profile": credentials.profile, "headers": dict(credentials.headers)}
    return request


def _module(invocation: Invocation) -> Path:
    options = invocation.tool.runtime.options
    try:
        module = sources.unpack(options["source"]) / str(options["module"])
    except sources.SourceError as error:
        raise _invalid("The tool's module cannot be used", str(error)) from error
    if not module.is_file():
        raise _invalid("The tool's module cannot be used", f"{options['module']} is not among the toolkit's files")
    return module


def _answer(invocation: Invocation, module: Path, request: bytes) -> Answer:
    options = invocation.tool.runtime.options
    limits = (options["fuel"], in_bytes(options["memory"]), invocation.timeout, os.getpid())
    command = [sys.executable, "-I", wasmhost.__file__, str(module), options["entrypoint"], *map(str, limits)]
    if invocation.cancel.is_set():
        raise CallError(ErrorCode.CANCELED, "The call was cancelled before it ran", is_sent=False)
    began = time.monotonic()
    try:
        conversation = Conversation(command, {})
    except OSError as error:
        raise isolation.missing("wasm", f"A process for the module could not be started: {error.strerror}") from error
    with conversation:
        try:
            return conversation.ask(
                request,
                # The child keeps the tool's own time, from when it is ready.
                deadline=began + invocation.timeout + (0.0 if invocation.is_hurried else PATIENCE),
                cancel=invocation.cancel,
                max_answer=invocation.max_answer,
            )
        except Overrun as error:
            raise _timeout(invocation) from error
        except Cancelled as error:
            raise CallError(ErrorCode.CANCELED, "The call was cancelled while it ran") from error
        except TooMuch as error:
            raise too_large(error.limit) from error
        finally:
            with contextlib.suppress(ProcessLookupError):
                conversation.process.kill()
            conversation.process.wait()


def _failure(answer: Answer, invocation: Invocation) -> CallError:
    """The child's verdict in the words of the error table."""
    options = invocation.tool.runtime.options
    said, _, reason = answer.errors.rpartition(b"\n")
    complaints.tell(said, invocation)
    why = complaints.excerpt(reason, invocation)
    match answer.returncode:
        case Verdict.OUT_OF_FUEL:
            return _spent("fuel", options["fuel"], why)
        case Verdict.OUT_OF_MEMORY:
            return _spent("memory", in_bytes(options["memory"]), why)
        case Verdict.TOO_LARGE:
            return _invalid("The tool's module is too large", why, limit=wasmhost.MAX_MODULE)
        case Verdict.BAD_MODULE:
            return _invalid("The tool's module cannot be run", why)
        case Verdict.NO_ENTRYPOINT:
            return _invalid("The tool's module has no such entry point", why)
        case Verdict.NO_ENGINE | Verdict.NO_WALLS:
            return isolation.missing("wasm", why)
        case Verdict.TRAPPED | Verdict.EXITED:
            return CallError(
                ErrorCode.EXECUTION_FAILED, "The tool's module failed", developer_message=why, can_retry=True
            )
    if answer.returncode == _TIME_IS_UP:
        return _timeout(invocation)
    return CallError(
        ErrorCode.EXECUTION_FAILED,
        "The tool's process ended before it answered",
        developer_message=f"It ended with {answer.returncode}: {complaints.excerpt(answer.errors, invocation)}",
    )


def _spent(resource: str, limit: int, why: str) -> CallError:
    return CallError(
        ErrorCode.EXECUTION_FAILED,
        f"The tool used up its {resource}",
        developer_message=why,
        details={"limit": limit, "resource": resource},
    )


def _timeout(invocation: Invocation) -> CallError:
    return CallError(
        ErrorCode.TIMEOUT,
        f"The tool did not answer within {invocation.timeout:g} s",
        details={"timeout_ms": round(invocation.timeout * 1000)},
    )


def _invalid(message: str, why: str, **details: Any) -> CallError:
    return CallError(ErrorCode.RUNTIME_INVALID, message, developer_message=why, details=details, is_sent=False)
