"""python -m placet.host --fd N --folder PATH: runs the tools of one folder, one call after the other.

It speaks frames over a socket it was given and ends when the other end closes. Whoever started it may kill it
at any moment; nothing here tries to stop a tool, because only another process can be sure to.
"""

import contextlib
import importlib
import os
import sys
import time
from _thread import _count as threads_running
from _thread import allocate_lock
from collections.abc import Callable
from typing import Any

from placet import child, frames, limits, walls
from placet.answers import BadResult, answer
from placet.context import ToolContext
from placet.conversion import Plan
from placet.errors import ToolError

MAX_TEXT = 4000  # characters of a message that leaves the host
MAX_LOGS = 200  # log lines of one call
MAX_PROGRESS = 1000  # progress reports of one call that are told as they come
PROGRESS_EVERY = 1.0  # seconds between those that follow; the last one is always told
MAX_TALK = 3_000_000  # bytes of both with their words; what follows are numbers, and the other end takes 4,000,000
MAX_ANSWER = 1_000_000  # bytes of a final frame, unless the request says otherwise
UNEXPECTED = "The tool failed unexpectedly"
NO_WALLS = 78  # the exit status of a host that could not be confined, and therefore did not start


class LoadError(Exception):
    """The entry point leads nowhere."""


class Call:
    """One call as the host sees it: the frames it sends while it runs, bounded, and none once it has ended."""

    __slots__ = ("_fd", "_held", "_is_over", "_lock", "_logs", "_next_at", "_pid", "_reports", "_room")

    def __init__(self, fd: int) -> None:
        self._fd = fd
        self._pid = os.getpid()
        self._logs, self._reports, self._room = MAX_LOGS, MAX_PROGRESS, MAX_TALK
        self._next_at = 0.0
        self._held: dict[str, Any] | None = None
        self._lock = allocate_lock()  # Threads of a tool may speak at the same time.
        self._is_over = False

    @property
    def is_ours(self) -> bool:
        """False in a copy that the tool forked: only the host itself may speak."""
        return os.getpid() == self._pid

    def emit(self, frame: dict[str, Any]) -> None:
        if not self.is_ours:
            return
        with self._lock:
            if self._is_over:
                return
            if frame["kind"] == "progress":
                self._progress(frame)
            elif self._logs >= 0:
                self._log(frame)

    def end(self) -> None:
        """Nothing is said from here on but how far it came, if that was held back."""
        with self._lock:
            if self._held is not None:
                self._report(self._held)
            self._is_over = True

    def _log(self, frame: dict[str, Any]) -> None:
        self._logs -= 1
        packed = frames.pack({**frame, "message": clean(frame["message"])})
        if self._logs < 0 or len(packed) > self._room:
            self._logs = -1
            packed = frames.pack({"kind": "log", "level": "warning", "message": "More was written than is kept"})
        self._send(packed)

    def _progress(self, frame: dict[str, Any]) -> None:
        """The first ones as they come, then now and then the latest."""
        now = time.monotonic()
        if self._reports <= 0 and now < self._next_at:
            self._held = frame
            return
        self._reports -= 1
        self._next_at = now + PROGRESS_EVERY
        self._report(frame)

    def _report(self, frame: dict[str, Any]) -> None:
        self._held = None
        packed = frames.pack({**frame, "message": clean(frame["message"])})
        self._send(packed if len(packed) <= self._room else frames.pack({**frame, "message": ""}))

    def _send(self, packed: bytes) -> None:
        self._room -= len(packed)
        frames.write(self._fd, packed)


class Printed:
    """Stands in for sys.stdout and sys.stderr: each printed line becomes a log frame of the current call."""

    encoding, errors, mode, closed = "utf-8", "replace", "w", False

    def __init__(self, host: "Host", level: str) -> None:
        self._host = host
        self._level = level
        self._line = ""

    def write(self, text: str) -> int:
        *lines, rest = (self._line + text).split("\n")
        self._line = rest[: MAX_TEXT + 1]
        for line in lines:
            self._tell(line)
        return len(text)

    def flush(self) -> None:
        """Lines are told when they end; the rest when the call does."""

    def finish(self) -> None:
        line, self._line = self._line, ""
        self._tell(line)

    def isatty(self) -> bool:
        return False

    def writable(self) -> bool:
        return True

    def fileno(self) -> int:
        raise OSError("a tool's output is no file")

    def _tell(self, line: str) -> None:
        call = self._host.call
        if line.strip() and call is not None:
            call.emit({"kind": "log", "level": self._level, "message": line})


class Host:
    """The tools of one folder, loaded once and called in turn."""

    def __init__(self, fd: int, folder: str, closed: str = "") -> None:
        self._fd = fd
        self._closed = closed
        self._folder = os.path.join(os.path.realpath(folder), "")
        self._tools: dict[str, tuple[Callable[..., Any], Plan]] = {}
        self._threads = 0
        self.call: Call | None = None

    def serve(self, missing: list[str]) -> None:
        """Answers requests until the other end closes; first tells which walls are missing."""
        streams = Printed(self, "info"), Printed(self, "warning")
        sys.stdout, sys.stderr = streams
        frames.write(self._fd, frames.pack({"kind": "ready", "missing": missing}))
        while (request := frames.read(self._fd)) is not None:
            self.call = call = Call(self._fd)
            final = self._final(request, call)
            if not call.is_ours:
                os._exit(0)  # The tool forked, and this is the copy that came back.
            for stream in streams:
                stream.finish()
            call.end()
            self.call = None
            frames.write(self._fd, self._packed(final, request.get("max_answer", MAX_ANSWER)))
            request.clear()  # Secrets do not wait here for the next call.

    def _final(self, request: dict[str, Any], call: Call) -> dict[str, Any]:
        try:
            function, plan = self._tool(request["entrypoint"])
        except (Exception, SystemExit) as error:
            return self._failure("load_failed", "The tool could not be loaded", error)
        try:
            context = self._context(request, call) if plan.context_parameter else None
            result = function(**plan.keywords(request["arguments"], context))
            if hasattr(result, "__await__"):
                import asyncio  # Half of what it takes to start a host, so only for those who need it.

                result = asyncio.run(_awaited(result))
            return answer(result, promises_content=plan.promises_content)
        except ToolError as error:
            return told(error) if hasattr(error, "retry_after_ms") else failure("exception", UNEXPECTED, error)
        except BadResult as error:
            return failure("bad_result", "The tool gave no usable result", error)
        except BaseException as error:
            return self._failure("exception", UNEXPECTED, error)

    def _failure(self, kind: str, message: str, error: BaseException) -> dict[str, Any]:
        """As `failure`; where the system refused something, with the walls that it may have run into."""
        final = failure(kind, message, error)
        if self._closed and isinstance(error, OSError):
            final["developer_message"] = clean(f"{final['developer_message']} ({self._closed})")
        return final

    def _tool(self, entrypoint: str) -> tuple[Callable[..., Any], Plan]:
        found = self._tools.get(entrypoint)
        if found is None:
            name, _, attribute = entrypoint.partition(":")
            module = importlib.import_module(name)
            if not os.path.realpath(getattr(module, "__file__", None) or "").startswith(self._folder):
                raise LoadError(f"the module {name} is not in the toolkit's folder")
            function = getattr(module, attribute, None)
            if not callable(function):
                raise LoadError(f"the module {name} has no function {attribute!r}")
            found = self._tools[entrypoint] = function, Plan(function)
            self._threads = threads_running()
        return found

    def _context(self, request: dict[str, Any], call: Call) -> ToolContext:
        caller = request.get("caller") or {}
        return ToolContext(
            secrets=request.get("secrets"),
            authorization=request.get("authorization"),
            agent=caller.get("agent") or "",
            user_id=caller.get("user_id") or "",
            call_id=request.get("call_id") or "",
            attempt=request.get("attempt") or 1,
            idempotency_key=request.get("idempotency_key") or "",
            trace_id=request.get("trace_id") or "",
            timeout=request.get("timeout"),
            folder=request.get("folder"),
            emit=call.emit,
        )

    def _packed(self, final: dict[str, Any], limit: int) -> bytes:
        # What still runs could speak into the next caller's call.
        spent = {"is_spent": True} if threads_running() > self._threads or _has_children() else {}
        packed = frames.pack(final | spent)
        if final["kind"] != "error" and len(packed) - 4 > limit:
            final = failure("bad_result", "The result is too large", BadResult(f"more than {limit} bytes"))
            packed = frames.pack(final | spent | {"limit": limit})
        return packed


def failure(kind: str, message: str, error: BaseException) -> dict[str, Any]:
    """The final frame of a failure nobody foresaw: the caller learns little, the developer the type and the message."""
    try:
        text = str(error)
    except Exception:
        text = ""
    name = type(error).__qualname__
    detail = text if isinstance(error, BadResult | LoadError) else f"{name}: {text}" if text else name
    return _error(kind, message, detail)


def told(error: ToolError) -> dict[str, Any]:
    """The final frame of a failure the tool foresaw."""
    frame = _error("tool_error", error.message, error.developer_message)
    frame["can_retry"] = error.can_retry
    frame["additional_prompt_content"] = clean(error.additional_prompt_content)
    frame["retry_after_ms"] = error.retry_after_ms
    return frame


def _error(kind: str, message: str, developer_message: str) -> dict[str, Any]:
    return {
        "kind": "error",
        "type": kind,
        "message": clean(message),
        "developer_message": clean(developer_message),
        "can_retry": False,
        "additional_prompt_content": "",
        "retry_after_ms": None,
    }


def clean(text: Any) -> str:
    """A text that fits a frame and a database: bounded, valid Unicode, without NUL."""
    whole = str(text)
    kept = whole if len(whole) <= MAX_TEXT else whole[:MAX_TEXT] + "…"
    return kept.encode("utf-8", "replace").decode().replace("\x00", "\ufffd")


async def _awaited(awaitable: Any) -> Any:
    return await awaitable


def _has_children() -> bool:
    """Whether a child, or an orphan of one, is still alive; those that have ended are buried."""
    try:
        while True:
            pid, _ = os.waitpid(-1, os.WNOHANG)
            if pid == 0:
                return True
    except ChildProcessError:
        return False


def main(arguments: list[str]) -> None:
    options = dict(zip(arguments[::2], arguments[1::2], strict=True))
    fd, folder = int(options["--fd"]), options["--folder"]
    limits.secure(fd, int(options.get("--parent", os.getppid())))
    is_confined = options.get("--walls") == "confined"
    missing = []
    if is_confined:
        try:
            limits.confine()
        except (OSError, ValueError) as error:
            missing.append(str(error))
    opened = options.get("--open")
    if opened is not None:
        hidden = options.get("--hide", "").split(os.pathsep)
        mine = walls.Mine(folder=folder, home=os.getcwd(), kept=options.get("--keep", ""))
        missing += walls.raise_around(mine, opened.split(","), [*filter(None, hidden)])
    if is_confined and missing:
        os._exit(NO_WALLS)
    child.settle(folder)
    with contextlib.suppress(BrokenPipeError):
        Host(fd, folder, "" if opened is None else walls.closed(opened.split(","))).serve(missing)
    os._exit(0)  # No farewell: threads and exit handlers of tools must not keep us.


if __name__ == "__main__":
    main(sys.argv[1:])
