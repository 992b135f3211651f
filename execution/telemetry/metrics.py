"""Counters and a histogram, kept by each process in a file of its own and summed when they are read."""

import logging
import os
import threading
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from django.conf import settings

from execution.telemetry.later import flush
from registry.toolspec import ToolSpec

if TYPE_CHECKING:
    from prometheus_client import CollectorRegistry

logger = logging.getLogger(__name__)

BUCKETS = (0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 120.0, 300.0)
MAX_TOOLS = 300  # names of tools that one process tells apart
OTHER, UNKNOWN = "other", "unknown"


def folder() -> Path:
    return Path(settings.PLACET_HOME) / "metrics"


class _Book:
    """The instruments of this process; the library decides where they write when it is first imported."""

    def __init__(self, place: Path) -> None:
        place.mkdir(mode=0o700, parents=True, exist_ok=True)
        _forget_the_dead(place)
        os.environ["PROMETHEUS_MULTIPROC_DIR"] = str(place)
        from prometheus_client import CollectorRegistry, Counter, Histogram

        mine = CollectorRegistry(auto_describe=False)
        calls = ["tool", "door", "outcome", "code"]
        self._calls = Counter("placet_calls", "Answers given at the doors", calls, registry=mine)
        self._attempts = Counter("placet_attempts", "Finished attempts", ["tool", "outcome", "code"], registry=mine)
        self._retries = Counter(
            "placet_retries", "Further attempts that were wanted", ["tool", "verdict"], registry=mine
        )
        self._seconds = Histogram(
            "placet_attempt_duration_seconds", "Time of an attempt", ["tool"], buckets=BUCKETS, registry=mine
        )
        self._known: dict[tuple[str, ...], Callable[[float], None]] = {}
        self._tools: dict[int, str] = {}
        self._names: set[str] = set()

    def call(self, door: str, tool: ToolSpec | None, outcome: str, code: str) -> None:
        self._counted(self._calls, "call", self._name(tool), door, outcome, code)

    def attempt(self, tool: ToolSpec, outcome: str, code: str, seconds: float) -> None:
        name = self._name(tool)
        self._counted(self._attempts, "attempt", name, outcome, code)
        observe = self._known.get(("seconds", name))
        if observe is None:
            observe = self._known["seconds", name] = self._seconds.labels(name).observe
        observe(seconds)

    def retry(self, tool: ToolSpec, verdict: str) -> None:
        self._counted(self._retries, "retry", self._name(tool), verdict)

    def _counted(self, counter: Any, kind: str, *labels: str) -> None:
        key = (kind, *labels)
        count = self._known.get(key)
        if count is None:
            count = self._known[key] = counter.labels(*labels).inc
        count(1.0)

    def _name(self, tool: ToolSpec | None) -> str:
        """Without its version, and only so many of them: what is published must not fill the memory of who reads."""
        if tool is None:
            return UNKNOWN
        name = self._tools.get(tool.id)
        if name is None:
            name = f"{tool.toolkit}.{tool.name}"
            if name not in self._names and len(self._names) >= MAX_TOOLS:
                return OTHER
            self._names.add(name)
            self._tools[tool.id] = name
        return name


_book: _Book | None = None
_is_broken = False
_lock = threading.Lock()


def load() -> _Book | None:
    """The instruments; None, said once, where they cannot write. A call never fails for its numbers."""
    global _book, _is_broken
    if _book is None and not _is_broken:
        with _lock:
            if _book is None and not _is_broken:
                try:
                    _book = _Book(folder())
                except (OSError, ValueError) as error:
                    _is_broken = True
                    logger.warning("no metrics are kept in this process: %s", error)
    return _book


def attempted(tool: ToolSpec, facts: dict[str, Any]) -> None:
    if (book := _book or load()) is not None:
        book.attempt(tool, facts["tool_status"], facts["tool_code"], facts["duration_ms"] / 1000)


def answered(door: str, tool: ToolSpec | None, outcome: str, code: str) -> None:
    if (book := _book or load()) is not None:
        book.call(door, tool, outcome, code)


def retried(tool: ToolSpec, is_granted: bool) -> None:
    if (book := _book or load()) is not None:
        book.retry(tool, "scheduled" if is_granted else "over_budget")


def collected() -> "CollectorRegistry":
    """All processes of this machine summed, as they stand now."""
    load()
    flush()
    from prometheus_client import CollectorRegistry
    from prometheus_client.multiprocess import MultiProcessCollector

    everything = CollectorRegistry()
    if folder().is_dir():
        MultiProcessCollector(everything, path=str(folder()))  # type: ignore[no-untyped-call]
    return everything


def _forget_the_dead(place: Path) -> None:
    """Files of processes that ended count on as long as one of their time lives: a sum must not shrink by a part."""
    files = {path: path.stem.rpartition("_")[2] for path in place.glob("*_*.db")}
    if any(_is_alive(int(pid)) for pid in files.values() if pid.isdigit() and int(pid) != os.getpid()):
        return
    for path in files:
        path.unlink(missing_ok=True)


def _is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except OSError:
        return True
    return True
