"""How one tool is used: charts and recent calls, of what this person may see."""

from collections.abc import Collection
from datetime import UTC, datetime
from typing import Any

import orjson
from django.db.models import Q

from execution.access import visible_calls
from execution.models import Call
from execution.portal import callcharts, numbers, statistics
from execution.portal.links import calls_url
from execution.portal.standing import Standing
from execution.portal.statistics import WINDOWS, Window
from execution.tones import DOORS, LABELS

RECENT = 10
_HEAVY = ("input", "result", "decision", "warnings", "sealed", "sealed_answer")


def usage(me: Standing, name: str, toolkit: int, tools: Collection[int], window: Window) -> dict[str, Any]:
    """Figures of all versions of a tool, as charts; empty where nothing of it counts for this person."""
    if not me.sees_totals:
        return {}
    figures = statistics.gather(me, window, only=Q(tool__in=list(tools)))
    reads = me.user.is_staff and me.reads_calls_of(toolkit)
    all_calls, failed = figures.total(), figures.total("failed")
    return {
        "windows": WINDOWS.values(),
        "window": window,
        "has_calls": bool(all_calls),
        "is_partial": not (me.sees_every_call or toolkit in me.counted),
        "by_version": {key: counts.total() for key, counts in figures.tools.items()},
        "told": f"{numbers.short(failed)} failed ({numbers.share(failed, all_calls)})",
        "charts": [
            callcharts.outcomes(
                figures, (lambda since, until: calls_url(search=name, since=since, until=until)) if reads else None
            ),
            callcharts.latency(figures),
        ]
        if all_calls
        else [],
        "list_url": calls_url(search=name, since=window.start(datetime.now(UTC))) if reads else "",
    }


def recent(me: Standing, tools: Collection[int]) -> list[dict[str, Any]]:
    """The newest calls of these tools, each leading to its timeline; only those that this person may see."""
    if not me.sees_calls:
        return []
    found = visible_calls(me.user, None).filter(tool__in=list(tools)).select_related("agent").defer(*_HEAVY)
    return [_row(call) for call in found.order_by("-id")[:RECENT]]


def _row(call: Call) -> dict[str, Any]:
    error = orjson.loads(call.error) if call.error else {}
    return {
        "call": call,
        "why": str(error.get("message", "")) if isinstance(error, dict) else "",
        "label": LABELS.get(call.state, ""),
        "door": DOORS.get(call.door, call.door),
    }
