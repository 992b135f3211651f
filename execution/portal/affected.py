"""Who is affected when a toolkit changes: the agents that called it in thirty days, how often and when last."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

from django.db.models import Q, QuerySet

from execution import totals
from execution.models import Call, CallTotal, TotalledSpan
from execution.portal.statistics import stretches
from policy.models import Agent
from registry.models import Tool

DAYS = 30
MOST = 50  # agents that are named


@dataclass(frozen=True, slots=True, kw_only=True)
class Caller:
    """One agent: which of the tools it called, how often, and on which day last."""

    agent: str
    calls: int
    last: datetime
    tools: tuple[str, ...]  # the most called first
    hit: tuple[str, ...] = ()  # those of them that will not work as before


@dataclass(frozen=True, slots=True, kw_only=True)
class Affected:
    """The agents, those with the most calls first, and how many there are in all."""

    callers: list[Caller]
    agents: int
    calls: int

    @property
    def unnamed(self) -> int:
        return self.agents - len(self.callers)


@dataclass(slots=True)
class _Tally:
    last: datetime
    tools: Counter[str] = field(default_factory=Counter)


def affected(tools: QuerySet[Tool], *, broken: Iterable[str] = (), now: datetime | None = None) -> Affected:
    """Those who called these tools; `broken` names the tools that will not work as before.

    Counted from totals, and from the calls themselves only in hours that are not totalled yet.
    """
    tools, now = tools.order_by(), now or datetime.now(UTC)
    found: dict[int, _Tally] = {}
    if names := dict(tools.values_list("pk", "name")):
        wanted = Q(tool__in=tools.values("pk"))
        left = _add_totals(found, names, wanted, now)
        _add_calls(found, names, wanted, left, now)
    most = sorted(found.items(), key=lambda item: (-item[1].tools.total(), item[0]))
    named = dict(Agent.objects.filter(pk__in=[key for key, _ in most[:MOST]]).values_list("pk", "name"))
    lost = {name.lower() for name in broken}
    callers = [
        Caller(
            agent=named[key],
            calls=tally.tools.total(),
            last=tally.last,
            tools=tuple(name for name, _ in tally.tools.most_common()),
            hit=tuple(name for name in tally.tools if name.lower() in lost),
        )
        for key, tally in most[:MOST]
    ]
    return Affected(callers=callers, agents=len(found), calls=sum(tally.tools.total() for tally in found.values()))


def _add_totals(found: dict[int, _Tally], names: dict[int, str], wanted: Q, now: datetime) -> set[datetime]:
    """Adds what is totalled and returns the hours that are not."""
    start = totals.floor(now, totals.DAY) - timedelta(days=DAYS - 1)
    left = set(totals.spans(start, now, totals.HOUR))
    fresh: dict[int, datetime] = {}
    spans = TotalledSpan.objects.filter(start__gte=start).order_by("-hours")  # days before hours
    for key, at, hours in spans.values_list("pk", "start", "hours"):
        if at in left:
            fresh[key] = at
            left -= set(totals.spans(at, at + timedelta(hours=hours), totals.HOUR))
    counted = CallTotal.objects.filter(wanted, span__in=fresh).order_by()
    columns = ("span_id", "agent_id", "tool_id", "succeeded", "failed", "refused", "dropped")
    for span, agent, tool, *counts in counted.values_list(*columns):
        if tool is not None:
            _add(found, agent, names[tool], sum(counts), fresh[span])
    return left


def _add_calls(found: dict[int, _Tally], names: dict[int, str], wanted: Q, hours: set[datetime], now: datetime) -> None:
    made = Q()
    for start, end in stretches(hours):
        made |= totals.made_between(start, min(end, now + timedelta(minutes=1)))
    calls = Call.objects.filter(wanted).filter(made).order_by() if made else Call.objects.none()
    for id, agent, tool in calls.values_list("pk", "agent_id", "tool_id"):
        if tool is not None:
            _add(found, agent, names[tool], 1, datetime.fromtimestamp((id.int >> 80) / 1000, UTC))


def _add(found: dict[int, _Tally], agent: int, tool: str, calls: int, at: datetime) -> None:
    if calls:
        tally = found.setdefault(agent, _Tally(last=at))
        tally.last = max(tally.last, at)
        tally.tools[tool] += calls
