"""The two pictures of how calls went: by outcome, and how long runs took."""

from collections.abc import Callable
from datetime import datetime, timedelta

from execution.portal import numbers
from execution.portal.charts import Chart, Point, Series
from execution.portal.statistics import Figures
from execution.portal.times import iso
from execution.totals import quantile

Leads = Callable[[datetime, datetime], str]  # to the calls between two moments

SHOWN = (("succeeded", "Succeeded", "good"), ("failed", "Failed", "bad"), ("refused", "Refused", "warn"))


def outcomes(figures: Figures, leads: Leads | None = None) -> Chart:
    """Bars that show how calls ended; each may lead to its calls."""
    series = [
        Series(name=name, values=[bar[outcome] for bar in figures.bars], tone=tone) for outcome, name, tone in SHOWN
    ]
    rest = [bar["dropped"] + bar["open"] for bar in figures.bars]
    series.append(Series(name="Open, expired or cancelled", values=rest, tone="calm"))
    all_calls = figures.total()
    good = numbers.share(figures.total("succeeded"), all_calls)
    calls = "1 call" if all_calls == 1 else f"{all_calls:,} calls"
    return Chart(
        key="outcomes",
        title="Calls by outcome",
        summary=f"{calls} in the last {figures.window.title}, {good} of them succeeded.",
        points=_points(figures, leads),
        series=series,
    )


def latency(figures: Figures) -> Chart:
    """Lines that show how long runs took."""
    half, nearly_all = numbers.took(figures.took(0.5)), numbers.took(figures.took(0.95))
    halves, most = ([quantile(steps, part) for steps in figures.steps] for part in (0.5, 0.95))
    return Chart(
        key="latency",
        title="How long runs take",
        summary=f"p50 {half}, p95 {nearly_all}, to about four percent.",
        points=_points(figures, None),
        series=[Series(name="p95", values=most, tone="warn"), Series(name="p50", values=halves, tone="good")],
        kind="lines",
        says=numbers.took,
    )


def _points(figures: Figures, leads: Leads | None) -> list[Point]:
    step = timedelta(hours=figures.window.hours)
    form = "%H:%M" if figures.window.hours == 1 else "%d %b %H:%M" if figures.window.hours < 24 else "%d %b"
    return [
        Point(
            label=f"{start:{form}}",
            tick=None if figures.window.hours != 6 else f"{start:%d %b}" if start.hour == 0 else "",
            moment=iso(start) if figures.window.hours == 1 else "",
            url=leads(start, start + step) if leads else "",
        )
        for start in figures.starts
    ]
