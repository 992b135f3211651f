"""A hook that keeps numbers per tool, shown at /metrics beside those of execution/telemetry.

Invocations, ends by error, the fastest and the slowest; the rate of success and the mean are worked out by who reads.
"""

import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from django.conf import settings

from execution.hooks.events import Completed, Event, Failed
from execution.telemetry import metrics

if TYPE_CHECKING:
    from prometheus_client.core import Metric

PATH = "execution.hooks.metrics"


@dataclass(slots=True)
class Numbers:
    """One tool's, over all processes since they were started together."""

    invocations: int = 0
    successes: int = 0
    failures: int = 0
    errors: dict[str, int] = field(default_factory=dict)
    seconds: float = 0.0
    fastest: float | None = None
    slowest: float | None = None

    @property
    def ended(self) -> int:
        return self.successes + self.failures

    @property
    def success_rate(self) -> float | None:
        return self.successes / self.ended if self.ended else None

    @property
    def average(self) -> float | None:
        return self.seconds / self.ended if self.ended else None


class _Book:
    """Instruments of this process, in the files of telemetry's."""

    def __init__(self) -> None:
        from prometheus_client import CollectorRegistry, Counter, Gauge

        mine = CollectorRegistry(auto_describe=False)
        self._begun = Counter("placet_tool_invocations", "Attempts that began", ["tool"], registry=mine)
        self._ended = Counter("placet_tool_ends", "Attempts that ended; by error", ["tool", "error"], registry=mine)
        self._seconds = Counter("placet_tool_seconds", "Time of all attempts that ended", ["tool"], registry=mine)
        self._fastest = Gauge(
            "placet_tool_duration_min_seconds", "The fastest attempt", ["tool"], multiprocess_mode="min", registry=mine
        )
        self._slowest = Gauge(
            "placet_tool_duration_max_seconds", "The slowest attempt", ["tool"], multiprocess_mode="max", registry=mine
        )
        self._bounds: dict[str, tuple[float, float]] = {}
        self._names: set[str] = set()
        self._lock = threading.Lock()

    def began(self, tool: str) -> None:
        self._begun.labels(self._name(tool)).inc()

    def ended(self, tool: str, seconds: float, error: str) -> None:
        name = self._name(tool)
        self._ended.labels(name, error).inc()
        self._seconds.labels(name).inc(seconds)
        with self._lock:
            low, high = self._bounds.get(name, (seconds, seconds))
            if name not in self._bounds or seconds < low:
                self._fastest.labels(name).set(seconds)
            if name not in self._bounds or seconds > high:
                self._slowest.labels(name).set(seconds)
            self._bounds[name] = (min(low, seconds), max(high, seconds))

    def _name(self, tool_id: str) -> str:
        name = tool_id.partition("@")[0]
        with_room = name in self._names or len(self._names) < metrics.MAX_TOOLS
        if not with_room:
            return metrics.OTHER
        self._names.add(name)
        return name


_book: _Book | None = None
_lock = threading.Lock()


def observe(event: Event) -> None:
    book = _book or _load()
    if book is None:
        return
    if isinstance(event, Completed | Failed):
        book.ended(event.tool_id, event.duration_ms / 1000, event.error if isinstance(event, Failed) else "")
    else:
        book.began(event.tool_id)


def numbers() -> dict[str, Numbers]:
    """All tools of which something is known, by name."""
    found: dict[str, Numbers] = {}
    for metric in metrics.collected().collect():
        for sample in metric.samples:
            if sample.name.startswith("placet_tool_"):
                _add(found.setdefault(sample.labels["tool"], Numbers()), sample.name, sample.labels, sample.value)
    return found


class Worked:
    """For a registry of Prometheus: the rates and averages that only whoever sums can know."""

    def collect(self) -> "Iterator[Metric]":
        from prometheus_client.core import GaugeMetricFamily

        rate = GaugeMetricFamily(
            "placet_tool_success_ratio", "Of attempts that ended, those that worked", labels=["tool"]
        )
        average = GaugeMetricFamily("placet_tool_duration_avg_seconds", "Mean time of an attempt", labels=["tool"])
        for tool, told in sorted(numbers().items()):
            if told.success_rate is not None and told.average is not None:
                rate.add_metric([tool], told.success_rate)
                average.add_metric([tool], told.average)
        yield rate
        yield average


def is_wanted() -> bool:
    return PATH in settings.PLACET_HOOKS


def _add(told: Numbers, name: str, labels: dict[str, str], value: float) -> None:
    match name:
        case "placet_tool_invocations_total":
            told.invocations += int(value)
        case "placet_tool_ends_total" if labels["error"] == "":
            told.successes += int(value)
        case "placet_tool_ends_total":
            told.failures += int(value)
            told.errors[labels["error"]] = int(value)
        case "placet_tool_seconds_total":
            told.seconds += value
        case "placet_tool_duration_min_seconds":
            told.fastest = value
        case "placet_tool_duration_max_seconds":
            told.slowest = value


def _load() -> Any:
    """After telemetry's: it tells the library where to write, and knows when it cannot."""
    global _book
    with _lock:
        if _book is None and metrics.load() is not None:
            _book = _Book()
    return _book
