"""Usage: how often agents called toolkits in the last days, from totals where a span is counted, else from calls."""

from collections import Counter
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from typing import Any

from django.db.models import Count, F, Q, Sum

from execution import totals
from execution.models import Call, CallTotal, TotalledSpan

_ALL = F("succeeded") + F("failed") + F("refused") + F("dropped")
_TOOLKIT = "tool__version__toolkit"

Used = Counter[tuple[int, int]]  # agent and toolkit to the number of calls, however they ended


def of_agents(agents: Any, days: int, now: datetime | None = None) -> Used:
    """The calls that these agents (keys, or a query) made to a tool, since midnight UTC so many days ago."""
    now = now or datetime.now(UTC)
    start = totals.floor(now, totals.DAY) - timedelta(days=days)
    left, counted = set(totals.spans(start, now, totals.HOUR)), []
    spans = TotalledSpan.objects.filter(start__gte=start).order_by("-hours")
    for key, begin, hours in spans.values_list("pk", "start", "hours"):
        covered = set(totals.spans(begin, begin + timedelta(hours=hours), totals.HOUR))
        if covered <= left:  # a day stands for its hours
            counted.append(key)
            left -= covered
    found: Used = Counter()
    rows = CallTotal.objects.filter(span__in=counted, agent__in=agents, tool__isnull=False).order_by()
    _add(found, rows.values_list("agent_id", _TOOLKIT).annotate(number=Sum(_ALL)))
    if (uncounted := _made_in(left)) is not None:
        calls = Call.objects.filter(uncounted, agent__in=agents, tool__isnull=False).order_by()
        _add(found, calls.values_list("agent_id", _TOOLKIT).annotate(number=Count("pk")))
    return found


def _add(found: Used, rows: Iterable[Any]) -> None:
    for agent, toolkit, number in rows:
        found[agent, toolkit] += number


def _made_in(hours: set[datetime]) -> Q | None:
    """Calls of these hours; hours that follow one another are asked for as one stretch."""
    wanted: Q | None = None
    hour, begin = timedelta(hours=1), None
    for start in sorted(hours):
        begin = start if begin is None else begin
        if start + hour not in hours:
            stretch = totals.made_between(begin, start + hour)
            wanted, begin = stretch if wanted is None else wanted | stretch, None
    return wanted
