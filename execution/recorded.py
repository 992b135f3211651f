"""Recorded calls for a replay: the newest judged ones, in batches, without holding a transaction or much memory."""

from collections.abc import Iterator
from typing import Any

import orjson
from django.db.models import QuerySet

from execution.models import Call
from policy.recordings import Recorded, Recordings

BATCH = 200  # an input is at most a megabyte: so many of them still fit

_COLUMNS = ("id", "agent_id", "tool_id", "input", "user_id", "created_at", "decision", "grant_id")


def recordings(last: int) -> Recordings:
    """At most so many of the newest calls that were judged; what was rejected before that is left out."""
    return Recordings(total=_judged()[:last].count(), batches=_batches(last))


def _judged() -> QuerySet[Call]:
    return Call.objects.exclude(decision="").filter(tool__isnull=False).order_by("-id")


def _batches(last: int) -> Iterator[list[Recorded]]:
    rows = _judged().values_list(*_COLUMNS)
    before = None
    while last > 0:
        found = list((rows if before is None else rows.filter(id__lt=before))[: min(BATCH, last)])
        if not found:
            return
        before, last = found[-1][0], last - len(found)
        yield [_recorded(row) for row in found]


def _recorded(row: tuple[Any, ...]) -> Recorded:
    id, agent_id, tool_id, input, user_id, created_at, decision, grant = row
    decided = orjson.loads(decision)
    return Recorded(
        id=id,
        agent_id=agent_id,
        tool_id=tool_id,
        arguments=input,
        user_id=user_id,
        at=created_at,
        effect=decided["effect"] if grant is None else "ask",  # that was the rules' word; a grant answered it
        rule=decided["rule"],
        revision=decided["revision"],
    )
