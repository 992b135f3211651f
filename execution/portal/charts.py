"""Charts as SVG made here: no script draws them, and the same numbers stand beside each as a table.

Widths are percentages and heights pixels, so that a chart fits every screen and its letters stay as large as they are.
Colours and patterns come from the style sheet: each series differs by both.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from math import ceil, log10

from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString

from audit.visible import visible
from execution.portal.numbers import short

HEIGHT, TOP, BOTTOM = 170.0, 18.0, 22.0  # of the bars, of the room above them, of the room for labels
MARGIN = 48.0  # for the numbers at the left
GAP = 0.18  # of a bar's place
MOST_LABELS = 8
TONES = ("good", "bad", "warn", "calm")


@dataclass(frozen=True, slots=True, kw_only=True)
class Point:
    """A place on the x axis."""

    label: str
    moment: str = ""  # ISO 8601, where the label is a time that the viewer's zone may change
    url: str = ""
    tick: str | None = None  # what stands below the axis, where the label is too long for it; empty: nothing


@dataclass(frozen=True, slots=True, kw_only=True)
class Series:
    """One value for each point; None where there is nothing to show."""

    name: str
    values: Sequence[float | None]
    tone: str
    url: str = ""

    def __post_init__(self) -> None:
        if self.tone not in TONES:
            raise ValueError(f"a series is {', '.join(TONES)}, not {self.tone!r}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Chart:
    """What the template draws: a picture for those who see it, a table for everyone."""

    key: str  # unique on its page, for the patterns
    title: str
    summary: str
    points: Sequence[Point]
    series: Sequence[Series]
    kind: str = "bars"
    axis: str = "From"  # what the points are, above their column in the table
    says: Callable[[float], str] = field(default=short)

    def __post_init__(self) -> None:
        if any(len(each.values) != len(self.points) for each in self.series):
            raise ValueError("every series has one value for each point")

    @property
    def is_empty(self) -> bool:
        return not any(value for each in self.series for value in each.values)

    @property
    def legend(self) -> list[dict[str, str]]:
        return [{"name": visible(each.name), "tone": each.tone, "url": each.url} for each in self.series]

    @property
    def rows(self) -> list[dict[str, object]]:
        """The table: what each point says, in words."""
        return [
            {
                "label": visible(point.label),
                "moment": point.moment,
                "url": point.url,
                "cells": [self._said(each.values[place]) for each in self.series],
            }
            for place, point in enumerate(self.points)
        ]

    def svg(self) -> SafeString:
        top = _ceiling(self._highest())
        drawn = self._bars(top) if self.kind == "bars" else self._lines(top)
        height = f"{TOP + HEIGHT + BOTTOM:.0f}"
        return format_html(
            '<div class="chart-picture" aria-hidden="true"><svg width="{0}" height="{1}" focusable="false">{2}</svg>'
            '<svg class="chart-plot" width="100%" height="{1}" focusable="false">{3}{4}{5}{6}</svg></div>',
            *(f"{MARGIN:.0f}", height, self._numbers(top), self._patterns(), self._grid(), drawn, self._labels()),
        )

    def _highest(self) -> float:
        if self.kind == "bars":
            return max((sum(each.values[n] or 0 for each in self.series) for n in range(len(self.points))), default=0)
        return max((value or 0 for each in self.series for value in each.values), default=0)

    def _said(self, value: float | None) -> str:
        return "–" if value is None else self.says(value)

    def _bars(self, top: float) -> SafeString:
        return format_html_join("", "{}", ((self._pile(place, top),) for place in range(len(self.points))))

    def _pile(self, place: int, top: float) -> SafeString:
        """The bars of one point, one above the other; a click on them leads where its row in the table leads."""
        width, point = 100 / len(self.points), self.points[place]
        floor, pieces = TOP + HEIGHT, []
        for each in self.series:
            height = HEIGHT * (each.values[place] or 0) / top
            if height:
                height = max(height, 1.0)  # what happened once is still seen
                floor -= height
                pieces.append((f"{floor:.1f}", f"{height:.1f}", f"chart-{each.tone}", self._fill(each)))
        x, broad = f"{(place + GAP / 2) * width:.3f}%", f"{(1 - GAP) * width:.3f}%"
        bars = format_html_join(
            "",
            '<rect x="{}" width="{}" y="{}" height="{}" class="{}"{} rx="1"></rect>',
            ((x, broad, y, height, tone, fill) for y, height, tone, fill in pieces),
        )
        said = ", ".join(f"{each.name} {self._said(each.values[place])}" for each in self.series)
        pile = format_html(
            '<g class="chart-pile"><title>{}: {}</title><rect x="{}" width="{}" y="{}" height="{}" class="chart-room">'
            "</rect>{}</g>",
            *(visible(point.label), visible(said)),
            *(x, broad, f"{TOP:.0f}", f"{HEIGHT:.0f}", bars),
        )
        return format_html('<a href="{}" tabindex="-1">{}</a>', point.url, pile) if point.url else pile

    def _fill(self, series: Series) -> SafeString:
        """Solid for what is good; a pattern for what is not, so that no colour has to be told from another."""
        return SafeString("") if series.tone == "good" else format_html(' fill="url(#{}-{})"', self.key, series.tone)

    def _patterns(self) -> SafeString:
        """Stripes, dots and lines in the colour of their tone."""
        shapes = {
            "bad": SafeString('<path d="M-1 7 L7 -1 M3 11 L11 3" class="chart-ink"></path>'),
            "warn": SafeString('<circle cx="2" cy="2" r="1.3" class="chart-dot"></circle>'),
            "calm": SafeString('<path d="M0 4 H8" class="chart-ink"></path>'),
        }
        used = [each.tone for each in self.series if each.tone in shapes and self.kind == "bars"]
        marks = format_html_join(
            "",
            '<pattern id="{}-{}" width="8" height="8" patternUnits="userSpaceOnUse">'
            '<rect width="8" height="8" class="chart-{}"></rect>{}</pattern>',
            ((self.key, tone, tone, shapes[tone]) for tone in used),
        )
        return format_html("<defs>{}</defs>", marks)

    def _lines(self, top: float) -> SafeString:
        """One line for each series; where a value is missing the line has a gap."""
        paths = []
        for each in self.series:
            path, is_down = "", False
            for place, value in enumerate(each.values):
                if value is not None:
                    x, y = (place + 0.5) * 100 / len(self.points), HEIGHT * (1 - value / top)
                    # A point between two gaps is drawn as a short line, for a path of one point shows nothing.
                    path += f"{'L' if is_down else 'M'}{x:.2f} {y:.2f} " + (
                        "" if is_down else f"h0.4 M{x:.2f} {y:.2f} "
                    )
                is_down = value is not None
            paths.append((path.strip(), each.tone))
        drawn = format_html_join(
            "", '<path d="{}" class="chart-line chart-line-{}" vector-effect="non-scaling-stroke"></path>', paths
        )
        return format_html(
            '<svg x="0" y="{}" width="100%" height="{}" viewBox="0 0 100 {}" preserveAspectRatio="none">{}</svg>',
            *(f"{TOP:.0f}", f"{HEIGHT:.0f}", f"{HEIGHT:.0f}", drawn),
        )

    def _grid(self) -> SafeString:
        lines = ((f"{TOP + HEIGHT * (1 - part):.1f}", "rule" if part else "base") for part in (0, 0.5, 1))
        return format_html_join("", '<line x1="0" x2="100%" y1="{0}" y2="{0}" class="chart-{1}"></line>', lines)

    def _numbers(self, top: float) -> SafeString:
        """What the lines stand for, at the left of them."""
        told = ((f"{TOP + HEIGHT * (1 - part) + 4:.1f}", self.says(top * part)) for part in (0.5, 1))
        x = f"{MARGIN - 8:.0f}"
        texts = ((x, y, said) for y, said in told)
        return format_html_join("", '<text x="{}" y="{}" text-anchor="end" class="chart-text">{}</text>', texts)

    def _labels(self) -> SafeString:
        """As many as have room; every other one is left out where the screen is narrow."""
        count = len(self.points)
        ticked = [place for place, point in enumerate(self.points) if point.tick != ""]
        kept = ticked[:: ceil(len(ticked) / MOST_LABELS) or 1]
        texts = []
        for order, place in enumerate(kept):
            point = self.points[place]
            told = format_html(' data-moment="{}" data-style="tick"', point.moment) if point.moment else ""
            label = visible(point.label if point.tick is None else point.tick)
            x, y = f"{(place + 0.5) * 100 / count:.3f}%", f"{TOP + HEIGHT + 16:.0f}"
            texts.append((x, y, " chart-rare" if order % 2 else "", told, label))
        return format_html_join("", '<text x="{}" y="{}" text-anchor="middle" class="chart-text{}"{}>{}</text>', texts)


def _ceiling(highest: float) -> float:
    """The next round number above the highest value: 1, 2, 3, 4, 5, 6 or 8 times a power of ten."""
    if highest <= 0:
        return 1.0
    power = 10.0 ** int(log10(highest) if highest >= 1 else log10(highest) - 1)
    return float(next(step * power for step in (1, 2, 3, 4, 5, 6, 8, 10, 20) if step * power >= highest))
