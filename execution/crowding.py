"""Crowding: one slow tool must not hold every worker, so only so many of its queued calls run at once.

Counted in the database when a worker is about to take a call, over all workers; workers that look at the same moment
may go beyond the number by one each. Calls that run inline are not among them: they have five seconds at most.
"""

from django.conf import settings
from django.utils import timezone

from audit.glance import glance
from execution import calls, dispatch
from execution.models import OPEN, Call, State

SOON, LATE = 0.2, 5.0  # seconds until the next look; longer for what waits longer
# The list of states is what the index of open calls says of itself: SQLite uses it only for a question in its words.
_RUNNING = (
    f'SELECT COUNT(*) FROM "{Call._meta.db_table}" WHERE "state" = \'{State.RUNNING.value}\' AND "state" IN '
    f'({", ".join(repr(str(state)) for state in OPEN)}) AND "tool_id" = %s AND "dispatch" <> \'inline\''
)


def is_full(call: Call) -> bool:
    """Whether as many calls of this tool run as may."""
    counted = glance(_RUNNING, [call.tool_id])
    return counted is not None and counted[0] >= settings.PLACET_TOOL_CONCURRENCY


def defer(call: Call) -> None:
    """The call stays queued and a worker looks again; no attempt is used up."""
    delay = pause(call)
    calls.defer(call, delay)
    dispatch.send(call.pk, delay=delay)


def pause(call: Call) -> float:
    """Seconds until the next look."""
    waited = (timezone.now() - call.created_at).total_seconds()
    return min(LATE, max(SOON, waited / 4))
