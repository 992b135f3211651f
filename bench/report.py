"""The report: a table for people, a file for machines."""

from __future__ import annotations

import json
import os
import platform
import time
from dataclasses import asdict
from pathlib import Path

from bench.figures import Stack
from bench.judging import Judging
from bench.targets import Target

LATEST = Path(__file__).parent / "results" / "latest.json"
_HEAD = ("", "past", "c", "calls/s", "p50 ms", "p95", "p99", "errors", "bare/s", "bare p50", "ratio/s", "ratio p50")


def show(stacks: list[Stack], targets: list[Target]) -> None:
    for stack in stacks:
        print(f"\n{stack.name}: {stack.about}\n")
        rows = [_HEAD, *(_row(stack, index) for index in range(len(stack.figures)))]
        widths = [max(len(row[column]) for row in rows) for column in range(len(_HEAD))]
        for row in rows:
            print("  " + "  ".join(cell.rjust(width) for cell, width in zip(row, widths, strict=True)))
        print()
        for used in stack.memory:
            pss, rss = used.web.pss + used.worker.pss, used.web.rss + used.worker.rss
            print(
                f"  memory, {used.mode}, {used.variant}: {pss:.0f} MB PSS ({rss:.0f} MB RSS):"
                f" web {used.web.pss:.0f} ({used.web.rss:.0f}) in {used.web.processes} processes,"
                f" worker {used.worker.pss:.0f} ({used.worker.rss:.0f}) in {used.worker.processes}"
            )
        for page in stack.pages:
            print(f"  page {page.name}: {page.milliseconds:.0f} ms, {page.queries} queries")
        for figures in stack.figures:
            if figures.first_error:
                print(f"  first error, {figures.mode}, {figures.variant}: {figures.first_error!r}")
    busiest = max((figures.client_cpu for stack in stacks for figures in stack.figures), default=0.0)
    print(f"\nThe load client used at most {busiest:.0%} of one core.\n")
    for target in targets:
        print(f"  {'ok    ' if target.is_met else 'MISSED'}  {target.promise}: {target.measured}")


def write(stacks: list[Stack], judging: Judging, targets: list[Target], path: Path = LATEST) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    content = {
        "at": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        "machine": {"cores": os.cpu_count(), "python": platform.python_version(), "kernel": platform.release()},
        "stacks": [stack.as_json() for stack in stacks],
        "judging": asdict(judging),
        "targets": [{"promise": each.promise, "measured": each.measured, "is_met": each.is_met} for each in targets],
    }
    path.write_text(json.dumps(content, indent=1) + "\n")


def _row(stack: Stack, index: int) -> tuple[str, ...]:
    figures = stack.figures[index]
    return (
        figures.mode,
        figures.variant,
        str(figures.concurrency),
        f"{figures.rate:.0f}",
        f"{figures.p50:.2f}",
        f"{figures.p95:.2f}",
        f"{figures.p99:.2f}",
        str(figures.errors),
        f"{figures.bare_rate:.0f}",
        f"{figures.bare_p50:.2f}",
        f"{figures.rate_ratio:.3f}",
        f"{figures.p50_ratio:.2f}",
    )
