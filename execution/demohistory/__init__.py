"""A long past for a home that has none: people in their roles, toolkits, agents, thirty days of calls, whole chains."""

from __future__ import annotations

from dataclasses import dataclass
from random import Random

from django.contrib.auth.models import User
from django.db import connection, transaction

from audit.sealing import seal_new_events
from execution import totals
from execution.demohistory import cast, present
from execution.demohistory.past import SPAN, Past, fill, moment
from policy.models import Agent

SEED = 20


class AlreadyMade(Exception):
    """This home has its past."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Made:
    """What was written."""

    calls: int
    events: int


def make(*, calls: int, events: int, tools: int = 0) -> Made:
    """So many calls and at least so many events; a home gets one past only."""
    if Agent.objects.filter(name__in=cast.AGENTS).exists() or User.objects.filter(username__in=cast.PEOPLE).exists():
        raise AlreadyMade("This home has a demo history already, or people and agents of the same names.")
    with transaction.atomic():  # a home has all of its past or none
        written = _write(calls, events, tools)
    with connection.cursor() as cursor:
        cursor.execute("ANALYZE")
    seal_new_events()
    return Made(calls=calls, events=max(events, written))


def _write(calls: int, events: int, tools: int) -> int:
    people = cast.people()
    cast.toolkits(people)
    cast.more_tools(tools, people["petra"])
    agents, its_tools = cast.callers(people["polly"]), cast.tools()
    until = moment()
    past = Past(agents=agents, tools=its_tools, approver=people["amir"], until=until, chance=Random(SEED))
    written = past.record(calls)
    fill(max(0, events - written))
    present.open_questions(people, agents, its_tools)
    present.waiting(agents["support-bot"])
    totals.count_again(until - SPAN)  # a sweeper may have counted this time while it was empty
    return written
