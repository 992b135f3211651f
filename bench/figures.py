"""Figures: what was measured, as data."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from statistics import median
from typing import Any

from bench.client import Load
from bench.pages import PageTime
from bench.processes import Memory


@dataclass(frozen=True, slots=True, kw_only=True)
class Figures:
    """Medians over the rounds of one measurement; each round stands beside one of the bare view."""

    mode: str  # "inline" or "queued"
    variant: str  # "fresh", or "full": with a long past
    concurrency: int
    rate: float
    p50: float
    p95: float
    p99: float
    errors: int
    rate_ratio: float  # our calls/s over the bare view's
    p50_ratio: float  # our p50 over the bare view's
    bare_rate: float
    bare_p50: float
    client_cpu: float
    first_error: str
    rounds: list[dict[str, Any]]

    @classmethod
    def over(cls, mode: str, variant: str, ours: Sequence[Load], bare: Sequence[Load]) -> Figures:
        pairs = list(zip(ours, bare, strict=True))
        return cls(
            mode=mode,
            variant=variant,
            concurrency=ours[0].concurrency,
            rate=median(load.rate for load in ours),
            p50=median(load.p50 for load in ours),
            p95=median(load.p95 for load in ours),
            p99=median(load.p99 for load in ours),
            errors=sum(load.errors for load in ours),
            rate_ratio=median(load.rate / beside.rate for load, beside in pairs),
            p50_ratio=median(load.p50 / beside.p50 for load, beside in pairs),
            bare_rate=median(load.rate for load in bare),
            bare_p50=median(load.p50 for load in bare),
            client_cpu=max(load.client_cpu for load in (*ours, *bare)),
            first_error=next((load.first_error for load in ours if load.first_error), ""),
            rounds=[{"ours": load.as_json(), "bare": beside.as_json()} for load, beside in pairs],
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Used:
    """Memory after a load."""

    mode: str
    variant: str
    web: Memory
    worker: Memory


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """Whether every answer that was counted has its rows, and whether the chains hold."""

    variant: str
    answers: int
    is_whole: bool
    problem: str = ""


@dataclass(slots=True)
class Stack:
    """All about one way to run."""

    name: str  # "embedded" or "company"
    about: str
    figures: list[Figures] = field(default_factory=list)
    memory: list[Used] = field(default_factory=list)
    evidence: list[Evidence] = field(default_factory=list)
    pages: list[PageTime] = field(default_factory=list)

    def find(self, mode: str, variant: str, concurrency: int) -> Figures:
        for figures in self.figures:
            if (figures.mode, figures.variant, figures.concurrency) == (mode, variant, concurrency):
                return figures
        raise LookupError(f"{self.name}: {mode}, {variant}, concurrency {concurrency} was not measured")

    def as_json(self) -> dict[str, Any]:
        return asdict(self)
