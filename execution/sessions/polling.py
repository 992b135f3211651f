"""A long poll: what a session may take, as soon as there is something to take or its patience ends."""

import threading
import time
from contextlib import ExitStack
from typing import NamedTuple
from uuid import UUID

from execution import bell, dispatch, stopping
from execution.models import Call
from execution.sessions import offers, pulls, register, seats
from execution.sessions.register import Served
from policy.caller import Caller
from registry import revision

LOOK_AGAIN = 1.0  # seconds between looks, for lost rings and for retries that come due
MAX_SEALED = 2_000_000  # bytes of what runs in one answer; one request is always told, however large


class Page(NamedTuple):
    """Calls to be had, and whether there are more."""

    calls: list[Call]
    has_more: bool
    is_crowded: bool = False  # there was no seat to wait on


def pending(caller: Caller, served: Served, *, wait: float, limit: int, after: UUID | None = None) -> Page | None:
    """None if the session was closed while it waited."""
    page = _look(served, limit, after)
    if page.calls or wait <= 0:
        return page
    with seats.taken(caller.agent_id) as is_seated, ExitStack() as ears:
        if not is_seated:
            return page._replace(is_crowded=True)
        until = ears.enter_context(dispatch.patience(wait))
        rung = threading.Event()
        for toolkit in served.toolkits:
            ears.enter_context(bell.listening(offers.topic(toolkit), rung.set))
        while True:
            rung.clear()
            revision.renew()
            now = register.find(caller, served.session.pk)
            if now is None:
                return None
            page = _look(now, limit, after)
            left = until - time.monotonic()
            if page.calls or left <= 0 or stopping.is_stopping():
                return page
            rung.wait(min(left, LOOK_AGAIN))


def _look(served: Served, limit: int, after: UUID | None) -> Page:
    queued = offers.pending(served.toolkits)
    if after is not None:
        queued = queued.filter(pk__gt=after)
    found = list(queued.select_related("agent")[: limit + 1])
    calls = found[:limit]
    size = 0
    for number, call in enumerate(calls):
        size += len(call.sealed or b"")
        if size > MAX_SEALED and number:
            calls = calls[:number]
            break
    pulls.note_offered(calls, served.session)
    return Page(calls, has_more=len(found) > len(calls))
