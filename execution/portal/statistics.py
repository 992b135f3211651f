"""How calls went in a stretch of time: from totals where a span is counted, from the calls themselves where not."""

from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

from django.db.models import Q

from execution import totals
from execution.models import Call, CallTotal, TotalledSpan
from execution.portal.standing import Standing
from policy import approvals
from policy.models import Approval

MOST_WAITS = 5_000
OUTCOMES = ("succeeded", "failed", "refused", "dropped", "open")


@dataclass(frozen=True, slots=True, kw_only=True)
class Window:
    """So many bars of so many hours, up to now."""

    key: str
    title: str
    bars: int
    hours: int

    def start(self, now: datetime) -> datetime:
        return totals.floor(now, self.hours) - timedelta(hours=self.hours * (self.bars - 1))


WINDOWS = {
    window.key: window
    for window in (
        Window(key="24h", title="24 hours", bars=24, hours=1),
        Window(key="7d", title="7 days", bars=28, hours=6),
        Window(key="30d", title="30 days", bars=30, hours=24),
    )
}


@dataclass(slots=True)
class Figures:
    """Counts by outcome for each bar and for each tool, and how long runs took."""

    window: Window
    start: datetime
    bars: list[Counter[str]] = field(default_factory=list)
    steps: list[Counter[int]] = field(default_factory=list)  # for each bar: runs by duration
    tools: defaultdict[int, Counter[str]] = field(default_factory=lambda: defaultdict(Counter))

    def __post_init__(self) -> None:
        self.bars = [Counter() for _ in range(self.window.bars)]
        self.steps = [Counter() for _ in range(self.window.bars)]

    @property
    def starts(self) -> list[datetime]:
        return [self.start + timedelta(hours=self.window.hours * place) for place in range(self.window.bars)]

    def total(self, *outcomes: str) -> int:
        return sum(bar[outcome] for bar in self.bars for outcome in outcomes or OUTCOMES)

    def took(self, part: float) -> float | None:
        """The duration that this part of all runs did not exceed."""
        return totals.quantile(sum(self.steps, Counter()), part)

    def place(self, at: datetime) -> int:
        return int((at - self.start) / timedelta(hours=self.window.hours))

    def add(self, place: int, tool: int | None, outcome: str, count: int) -> None:
        self.bars[place][outcome] += count
        if tool is not None:
            self.tools[tool][outcome] += count


def gather(who: Standing, window: Window, now: datetime | None = None, *, only: Q | None = None) -> Figures:
    """The figures of the calls that count for this person; only of these, if it is said of which."""
    now, counting = now or datetime.now(UTC), who.totals & (only or Q())
    found = Figures(window=window, start=window.start(now))
    left = set(totals.spans(found.start, now, totals.HOUR))
    for hours in (totals.DAY, totals.HOUR):
        if hours > window.hours:
            continue
        spans = dict(TotalledSpan.objects.filter(hours=hours, start__gte=found.start).values_list("pk", "start"))
        fresh = {key: start for key, start in spans.items() if start in left}
        for start in fresh.values():
            left -= set(totals.spans(start, start + timedelta(hours=hours), totals.HOUR))
        _add_totals(found, counting, fresh)
    _add_calls(found, counting, left, now)
    return found


def waits(who: Standing, start: datetime) -> list[float]:
    """How long people took to answer, in milliseconds, shortest first; of the calls that this person may see."""
    seen = Approval.objects.all() if who.sees_every_call else approvals.visible_to(who.user)
    answered = seen.filter(totals.made_between(start, datetime.now(UTC)), decided_at__isnull=False)
    pairs = answered.order_by("-pk").values_list("created_at", "decided_at")[:MOST_WAITS]
    return sorted((decided - asked).total_seconds() * 1000 for asked, decided in pairs if decided is not None)


def part_of(values: list[float], part: float) -> float | None:
    """The value that this part of the sorted values does not exceed."""
    return values[min(int(len(values) * part), len(values) - 1)] if values else None


def _add_totals(found: Figures, counting: Q, spans: dict[int, datetime]) -> None:
    counted = CallTotal.objects.filter(counting, span__in=list(spans)) if spans else CallTotal.objects.none()
    columns = ("span_id", "tool_id", "succeeded", "failed", "refused", "dropped", "durations")
    for span, tool, *counts, durations in counted.order_by().values_list(*columns):
        place = found.place(spans[span])
        for outcome, count in zip(OUTCOMES, counts, strict=False):
            if count:
                found.add(place, tool, outcome, count)
        steps = found.steps[place]
        for step, count in durations.items():
            steps[int(step)] += count


def _add_calls(found: Figures, counting: Q, hours: set[datetime], now: datetime) -> None:
    """The hours that are not counted yet: the one that is running, and those with calls that are still open."""
    wanted = Q()
    for start, end in stretches(hours):
        wanted |= totals.made_between(start, min(end, now + timedelta(minutes=1)))
    if not wanted:
        return
    columns = ("pk", "tool_id", "state", "duration_ms")
    calls: Iterable[Any] = Call.objects.filter(counting).filter(wanted).order_by().values_list(*columns)
    for id, tool, state, duration in calls:
        place = min(found.place(datetime.fromtimestamp((id.int >> 80) / 1000, UTC)), found.window.bars - 1)
        found.add(place, tool, totals.OUTCOMES.get(state, "open"), 1)
        if duration is not None:
            found.steps[place][totals.step_of(duration)] += 1


def stretches(hours: set[datetime]) -> list[tuple[datetime, datetime]]:
    """Hours that follow one another, as one."""
    found: list[tuple[datetime, datetime]] = []
    for start in sorted(hours):
        end = start + timedelta(hours=1)
        if found and found[-1][1] == start:
            found[-1] = (found[-1][0], end)
        else:
            found.append((start, end))
    return found
