"""Targets: what the figures must reach, and whether they do."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from bench.figures import Figures, Stack
from bench.judging import Judging
from bench.pages import LIMIT_MS

MAX_MEGABYTES = 400.0
QUEUED_P50 = {"embedded": 40.0, "company": 15.0}  # milliseconds
TOLERANCE = 0.10
JUDGING_RATIO, JUDGING_MICROSECONDS = 2.0, 1_000.0


@dataclass(frozen=True, slots=True)
class Target:
    """One promise, what was measured, and whether it is kept."""

    promise: str
    measured: str
    is_met: bool


def targets(stacks: list[Stack], judging: Judging) -> Iterator[Target]:
    for stack in stacks:
        yield from _speed(stack)
        yield from _memory(stack)
        yield from _evidence(stack)
        yield from _pages(stack)
    promise = f"judging 1,000 rules at most {JUDGING_RATIO:g} times 10 rules, under 1 ms"
    is_met = judging.ratio <= JUDGING_RATIO and judging.many < JUDGING_MICROSECONDS
    yield Target(promise, judging.told, is_met)


def _speed(stack: Stack) -> Iterator[Target]:
    for figures in stack.figures:
        subject = f"{stack.name}, {figures.mode}, concurrency {figures.concurrency}"
        if figures.variant == "full":
            yield from _same(subject, figures, stack.find(figures.mode, "fresh", figures.concurrency))
            continue
        if figures.mode == "inline" and figures.concurrency == 16:
            yield _at_least(f"{subject}: 0.15 of the bare view's calls/s", figures.rate_ratio, 0.15)
        if figures.mode == "inline" and figures.concurrency == 1:
            yield _at_most(f"{subject}: 5 times the bare view's p50", figures.p50_ratio, 5.0)
        if figures.mode == "queued" and figures.concurrency == 16:
            yield _at_least(f"{subject}: 0.03 of the bare view's calls/s", figures.rate_ratio, 0.03)
        if figures.mode == "queued" and figures.concurrency == 1:
            limit = QUEUED_P50[stack.name]
            yield _at_most(f"{subject}: p50 of {limit:g} ms", figures.p50, limit)
    errors = sum(figures.errors for figures in stack.figures)
    yield Target(f"{stack.name}: no errors", str(errors), errors == 0)


def _same(subject: str, full: Figures, fresh: Figures) -> Iterator[Target]:
    """With a long past, within a tenth of what it is without one: in throughput, alone in latency."""
    if full.concurrency == 1:
        change = full.p50_ratio / fresh.p50_ratio
        yield _at_most(f"{subject}: p50 with a long past, against none", change, 1 + TOLERANCE)
    elif full.concurrency == 16:
        change = full.rate_ratio / fresh.rate_ratio
        yield _at_least(f"{subject}: calls/s with a long past, against none", change, 1 - TOLERANCE)


def _memory(stack: Stack) -> Iterator[Target]:
    worst = max(used.web.pss + used.worker.pss for used in stack.memory)
    yield _at_most(f"{stack.name}: web and worker in MB (PSS)", worst, MAX_MEGABYTES)


def _evidence(stack: Stack) -> Iterator[Target]:
    for found in stack.evidence:
        promise = f"{stack.name}, {found.variant}: each of {found.answers} calls has its committed rows and events"
        yield Target(promise, "yes" if found.is_whole else found.problem, found.is_whole)


def _pages(stack: Stack) -> Iterator[Target]:
    for page in stack.pages:
        promise = f"{stack.name}: page {page.name} of the portal within {LIMIT_MS:g} ms"
        yield Target(promise, f"{page.milliseconds:g} ms, status {page.status}", page.is_good)


def _at_least(promise: str, measured: float, limit: float) -> Target:
    return Target(f"{promise} >= {limit:g}", f"{measured:.3f}", measured >= limit)


def _at_most(promise: str, measured: float, limit: float) -> Target:
    return Target(f"{promise} <= {limit:g}", f"{measured:.3f}", measured <= limit)
