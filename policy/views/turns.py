"""Turns: how decisions change from one policy to another, drawn as two bars with the flows between, and as a table."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString

HEIGHT = 230.0  # of the picture, in pixels; its width is the page's
GAP, LEAST = 12.0, 8.0  # between two parts of a bar, and of the smallest part: its label needs the room
SIDE, BAR = 132.0, 14.0  # the room for labels beside a bar, and the bar
WORDS = {"allow": "Allowed", "ask": "Asked", "deny": "Denied", "undecidable": "Undecidable"}
TONES = {"allow": "good", "ask": "warn", "deny": "bad", "undecidable": "calm"}
_MARKS = {
    "warn": SafeString('<circle cx="2" cy="2" r="1.3" class="chart-dot"></circle>'),
    "bad": SafeString('<path d="M-1 7 L7 -1 M3 11 L11 3" class="chart-ink"></path>'),
    "calm": SafeString('<path d="M0 4 H8" class="chart-ink"></path>'),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """One piece of a bar: how many calls ended so, and where it stands."""

    effect: str
    count: int
    top: float
    height: float


class Turns:
    """Counts by what was decided and what would be; nothing is drawn where nothing was counted."""

    def __init__(self, key: str, counted: Iterable[tuple[str, str, int]]) -> None:
        self.key = key
        self._counts: Counter[tuple[str, str]] = Counter()
        for was, now, count in counted:
            if was in WORDS and now in WORDS:
                self._counts[was, now] += count

    def __bool__(self) -> bool:
        return bool(self._counts.total())

    @property
    def summary(self) -> str:
        changed = sum(count for (was, now), count in self._counts.items() if was != now)
        total = self._counts.total()
        return f"{changed:,} of {total:,} call{'s' if total > 1 else ''} would be decided otherwise."

    @property
    def heads(self) -> list[str]:
        return [WORDS[effect] for effect in self._after()]

    @property
    def rows(self) -> list[dict[str, object]]:
        """The table: a row for what was decided, a column for what would be."""
        return [
            {
                "was": WORDS[was],
                "cells": [
                    {"count": self._counts[was, now], "is_same": was == now, "now": WORDS[now]} for now in self._after()
                ],
                "total": sum(self._counts[was, now] for now in WORDS),
            }
            for was in self._before()
        ]

    def svg(self) -> SafeString:
        before = _parts({was: sum(self._counts[was, now] for now in WORDS) for was in self._before()})
        after = _parts({now: sum(self._counts[was, now] for was in WORDS) for now in self._after()})
        return format_html(
            '<div class="turns-picture" aria-hidden="true">{}{}{}</div>',
            self._side(before, is_left=True),
            self._flows(before, after),
            self._side(after, is_left=False),
        )

    def _before(self) -> list[str]:
        return [effect for effect in WORDS if any(self._counts[effect, now] for now in WORDS)]

    def _after(self) -> list[str]:
        return [effect for effect in WORDS if any(self._counts[was, effect] for was in WORDS)]

    def _side(self, parts: list[Part], *, is_left: bool) -> SafeString:
        """A bar and its labels; of a fixed width, so that letters and patterns are never stretched."""
        x, at, anchor = (SIDE - BAR, SIDE - BAR - 8, "end") if is_left else (0.0, BAR + 8, "start")
        bars = format_html_join(
            "",
            '<rect x="{}" y="{}" width="{}" height="{}" rx="2" class="chart-{}"{}></rect>'
            '<text x="{}" y="{}" text-anchor="{}" class="turns-text">{} {}</text>',
            (
                (
                    *(f"{x:.0f}", f"{each.top:.1f}", f"{BAR:.0f}", f"{each.height:.1f}"),
                    *(TONES[each.effect], self._fill(each.effect)),
                    *(f"{at:.0f}", f"{each.top + each.height / 2 + 4:.1f}", anchor),
                    *(WORDS[each.effect], f"{each.count:,}"),
                )
                for each in parts
            ),
        )
        patterns = self._patterns() if is_left else SafeString("")
        return format_html(
            '<svg width="{}" height="{}" focusable="false">{}{}</svg>', f"{SIDE:.0f}", f"{HEIGHT:.0f}", patterns, bars
        )

    def _flows(self, before: list[Part], after: list[Part]) -> SafeString:
        """One ribbon for each turn, as broad at either end as its share of the bar there."""
        used_left: Counter[str] = Counter()
        used_right: Counter[str] = Counter()
        drawn = []
        for left in before:
            for right in after:
                count = self._counts[left.effect, right.effect]
                if not count:
                    continue
                y, high = _slice(left, used_left, count)
                z, deep = _slice(right, used_right, count)
                path = (
                    f"M0 {y:.2f} C50 {y:.2f} 50 {z:.2f} 100 {z:.2f} V{z + deep:.2f} "
                    f"C50 {z + deep:.2f} 50 {y + high:.2f} 0 {y + high:.2f} Z"
                )
                said = f"{WORDS[left.effect]} before, {WORDS[right.effect].lower()} now: {count:,}"
                same = "is-same" if left.effect == right.effect else "is-other"
                drawn.append((path, f"turns-flow turns-{TONES[right.effect]} {same}", said))
        ribbons = format_html_join("", '<path d="{}" class="{}"><title>{}</title></path>', drawn)
        return format_html(
            '<svg class="turns-flows" width="100%" height="{0}" viewBox="0 0 100 {0}" preserveAspectRatio="none" '
            'focusable="false">{1}</svg>',
            f"{HEIGHT:.0f}",
            ribbons,
        )

    def _fill(self, effect: str) -> SafeString:
        tone = TONES[effect]
        return format_html(' fill="url(#{}-{})"', self.key, tone) if tone in _MARKS else SafeString("")

    def _patterns(self) -> SafeString:
        """Each effect differs by more than its colour."""
        marks = format_html_join(
            "",
            '<pattern id="{}-{}" width="8" height="8" patternUnits="userSpaceOnUse">'
            '<rect width="8" height="8" class="chart-{}"></rect>{}</pattern>',
            ((self.key, tone, tone, mark) for tone, mark in _MARKS.items()),
        )
        return format_html("<defs>{}</defs>", marks)


def _parts(counts: dict[str, int]) -> list[Part]:
    """A bar cut into its parts; the smallest is still seen."""
    room = HEIGHT - GAP * (len(counts) - 1) - LEAST * len(counts)
    total, top, found = sum(counts.values()), 0.0, []
    for effect, count in counts.items():
        height = LEAST + room * count / total
        found.append(Part(effect=effect, count=count, top=top, height=height))
        top += height + GAP
    return found


def _slice(part: Part, used: Counter[str], count: int) -> tuple[float, float]:
    """The next piece of a part for so many calls: where it begins and how high it is."""
    top = part.top + part.height * used[part.effect] / part.count
    used[part.effect] += count
    return top, part.height * count / part.count
