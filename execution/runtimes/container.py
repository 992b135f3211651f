"""The container runtime: an image run once for one call, with no network, no disk, no rights and hard limits."""

import contextlib
import re
import secrets
import subprocess
import threading
import time

import orjson
from django.conf import settings

from execution import envelope
from execution.errors import CallError, ErrorCode
from execution.runtimes import complaints, engine, isolation
from execution.runtimes.base import Invocation, RunResult
from execution.runtimes.engine import PREFIX, Engine, EngineMissing, Order
from execution.runtimes.oversize import too_large
from execution.runtimes.process import Answer, Cancelled, Conversation, Overrun, TooMuch
from execution.runtimes.sizes import in_bytes
from execution.traffic import Traffic
from registry import strictjson

_UNSTARTED = re.compile(rb"^ERROR \(catatonit:\d+\): failed to exec", re.MULTILINE)  # podman's init, with status 1
KILL_WITHIN = 10.0  # seconds until a client that does not notice its container's end is killed too


class ContainerRuntime:
    """The Tool Contract's request on standard input, a response, JSON or text on standard output."""

    def __init__(self) -> None:
        self._engine: Engine | None = None
        self._lock = threading.Lock()

    def run(self, invocation: Invocation) -> RunResult:
        found = self._found()
        if invocation.cancel.is_set():
            raise CallError(ErrorCode.CANCELED, "The call was cancelled before it ran", is_sent=False)
        request = orjson.dumps(envelope.request_envelope(invocation))
        answer = _answer(found, invocation, request)
        complaints.tell(answer.errors, invocation)
        if answer.returncode == 0:
            return _result(answer.output, invocation, Traffic(len(request), len(answer.output), "exit 0"))
        raise self._failure(found, answer, invocation)

    def _found(self) -> Engine:
        """The engine, looked for until there is one; whoever finds it first clears away what dead processes left."""
        with self._lock:
            if self._engine is None:
                try:
                    self._engine = engine.find(settings.PLACET_CONTAINER_ENGINE)
                except EngineMissing as error:
                    raise isolation.missing("container", str(error)) from error
                threading.Thread(target=sweep, args=(self._engine,), name="placet-sweep").start()
            return self._engine

    def _failure(self, found: Engine, answer: Answer, invocation: Invocation) -> CallError:
        """What a container's exit status means; 125 to 127 are the engine's, unless the tool borrowed them."""
        options = invocation.tool.runtime.options
        why = complaints.excerpt(answer.errors, invocation)
        status = 127 if _UNSTARTED.search(answer.errors) else answer.returncode
        details = {"exit_code": status}
        match status:
            case 125:
                return self._not_started(found, options["image"], why)
            case 126 | 127:
                return CallError(
                    ErrorCode.RUNTIME_INVALID,
                    "The image's command cannot be run",
                    developer_message=why,
                    details=details,
                )
            case 137:  # SIGKILL, and not ours: so end those who want more memory than there is.
                return CallError(
                    ErrorCode.EXECUTION_FAILED,
                    "The tool was killed, as happens when it needs more memory than it may have",
                    developer_message=why,
                    details=details | {"limit": in_bytes(options["memory"]), "resource": "memory"},
                )
        return CallError(
            ErrorCode.EXECUTION_FAILED, "The tool failed", developer_message=why, details=details, can_retry=True
        )

    def _not_started(self, found: Engine, image: str, why: str) -> CallError:
        try:
            found.check()
        except EngineMissing:
            self._engine = None  # The next call looks for one again.
            return isolation.missing("container", why)
        if not found.has_image(image):
            return CallError(
                ErrorCode.RUNTIME_INVALID,
                "The tool's image is not on this machine",
                developer_message=why,
                is_sent=False,
            )
        return CallError(ErrorCode.EXECUTION_FAILED, "The container could not be run", developer_message=why)


def _result(output: bytes, invocation: Invocation, traffic: Traffic) -> RunResult:
    """A response of the contract, any other JSON, or a text."""
    try:
        value = strictjson.loads(output, max_bytes=max(len(output), 1))
    except strictjson.StrictJSONError:
        try:
            value = output.decode().strip() or None
        except UnicodeDecodeError:
            value = "\0"
        if value and "\0" in value:
            raise CallError(
                ErrorCode.EXECUTION_FAILED, "The tool's answer is neither JSON nor text", traffic=traffic
            ) from None
    if isinstance(value, dict) and isinstance(value.get("status"), str) and value["status"] in envelope.STATUSES:
        return envelope.result_of(value, invocation, traffic=traffic)
    return RunResult(value=value, traffic=traffic)


def _answer(found: Engine, invocation: Invocation, request: bytes) -> Answer:
    options = invocation.tool.runtime.options
    variables = invocation.credentials.environment
    order = Order(
        name=f"{PREFIX}{secrets.token_hex(12)}",
        image=options["image"],
        command=options.get("command", ()),
        memory=options["memory"],
        cpus=options["cpus"],
        pids=options["pids"],
        variables=sorted(variables),
        seconds=invocation.timeout,
    )
    try:
        conversation = Conversation(found.run(order), {**engine.surroundings(), **variables})
    except OSError as error:
        raise isolation.missing("container", f"{found.path} could not be started: {error.strerror}") from error
    is_over = False
    try:
        with conversation:
            answer = conversation.ask(
                request,
                deadline=time.monotonic() + invocation.timeout,
                cancel=invocation.cancel,
                max_answer=invocation.max_answer,
            )
        is_over = True
        return answer
    except Overrun as error:
        raise CallError(
            ErrorCode.TIMEOUT,
            f"The tool did not answer within {invocation.timeout:g} s",
            details={"timeout_ms": round(invocation.timeout * 1000)},
        ) from error
    except Cancelled as error:
        raise CallError(ErrorCode.CANCELED, "The call was cancelled while it ran") from error
    except TooMuch as error:
        raise too_large(error.limit) from error
    finally:
        if not is_over:  # The caller does not wait for it, the interpreter does.
            threading.Thread(target=end, args=(found, order.name, conversation.process), name="placet-end").start()


def end(found: Engine, name: str, client: subprocess.Popen[bytes]) -> None:
    """Kills a container by its name, also one that is still being made, and then whatever is left of it."""
    until = time.monotonic() + KILL_WITHIN
    while client.poll() is None and time.monotonic() < until:
        found.kill(name)
        with contextlib.suppress(subprocess.TimeoutExpired):
            client.wait(0.1)
    with contextlib.suppress(ProcessLookupError):
        client.kill()
    client.wait()
    found.remove(name)


def sweep(found: Engine) -> None:
    """Removes the containers of processes that died before they could."""
    for name in found.strays():
        found.remove(name)
