"""Breakers: a tool whose backend keeps failing is answered for at once, until one call finds it well again.

The state is in the database, one for all processes. Calls of tools without an open breaker never look at it: which
are open is read once per revision, and opening or closing one makes a new revision.
"""

import logging
from datetime import datetime
from threading import Lock

from django.conf import settings
from django.db import DatabaseError, transaction
from django.db.models import Q
from django.db.models.functions import Now

from audit import trail
from execution.errors import CallError, ErrorCode, Failure
from execution.models import Breaker, Call, State
from execution.retries import is_retryable
from registry import revision
from registry.clock import Later
from registry.toolspec import ToolSpec

logger = logging.getLogger(__name__)

SPARE = 5.0  # seconds that a trial has beyond the tool's own time
LOOK_BACK = 200  # calls among which a success is looked for before a breaker opens
OWN_WORD = "breaker"  # the detail by which our refusals are told from the tool's failures

_open: frozenset[int] = frozenset()
_read_at = -1
_lock = Lock()


def refusal(tool: ToolSpec) -> Failure | None:
    """For the door: why the call would not run now, without taking the trial from whoever runs it."""
    if not settings.PLACET_BREAKER_FAILURES or tool.id not in _opened():
        return None
    wait = _wait(tool)
    return _failure(tool, wait) if wait > 0 else None


def enter(tool: ToolSpec) -> None:
    """For who is about to run the tool: passes while the breaker is closed, else for one trial at a time."""
    if not settings.PLACET_BREAKER_FAILURES or tool.id not in _opened():
        return
    due = Breaker.objects.filter(Q(trial_until=None) | Q(trial_until__lt=Now()), tool_id=tool.id)
    due = due.filter(state=Breaker.State.OPEN, retry_at__lte=Now())
    if due.update(trial_until=Later(tool.runtime.timeout + SPARE)):
        return
    if Breaker.objects.filter(tool_id=tool.id, state=Breaker.State.OPEN).exists():
        failure = _failure(tool, max(_wait(tool), 1.0))
        raise CallError(
            failure.code,
            failure.message,
            is_sent=False,
            can_retry=True,
            retry_after_ms=failure.retry_after_ms,
            details=failure.details,
        )


def learn(tool: ToolSpec, failure: Failure | None, *, is_hurried: bool = False) -> None:
    """What an attempt says about the backend. It is on record already, so trouble here is only logged.

    Of one whose caller was in more of a hurry than the tool, running out of time says nothing.
    """
    if not settings.PLACET_BREAKER_FAILURES:
        return
    try:
        if failure is None:
            if tool.id in _opened():
                close(tool.id, actor="system", reason="a call succeeded")
        elif OWN_WORD in failure.details:
            return
        elif is_backends(failure) and not (is_hurried and failure.code is ErrorCode.TIMEOUT):
            _count(tool, failure)
        elif tool.id in _opened():  # the trial says nothing about the backend: the next call is one
            Breaker.objects.filter(tool_id=tool.id, state=Breaker.State.OPEN).update(trial_until=None)
    except DatabaseError as error:
        logger.warning("the breaker of %s could not be kept: %s", tool.tool_id, type(error).__name__)


def is_backends(failure: Failure) -> bool:
    """Whether the backend is to blame: it did not answer in time, or failed in a way that may pass."""
    if failure.code is ErrorCode.TIMEOUT:
        return True
    return failure.code is ErrorCode.EXECUTION_FAILED and is_retryable(failure)


def close(tool: int, *, actor: str, reason: str) -> bool:
    """Calls go through again; False if they did already."""
    with transaction.atomic():
        breaker = Breaker.objects.filter(tool_id=tool, state=Breaker.State.OPEN)
        if not breaker.update(
            state=Breaker.State.CLOSED, failures=0, since=None, opened_at=None, retry_at=None, trial_until=None
        ):
            return False
        named = Breaker.objects.select_related("tool__version__toolkit").get(tool_id=tool).tool
        detail = {"tool": named.tool_id, "reason": reason}
        trail.record("version", str(named.version), "tool.breaker_closed", actor=actor, detail=detail)
    logger.info("%s: calls go through again, %s", named.tool_id, reason)
    return True


def _count(tool: ToolSpec, failure: Failure) -> None:
    with transaction.atomic():
        Breaker.objects.get_or_create(tool_id=tool.id)
        breaker = Breaker.objects.select_for_update().annotate(now=Now()).get(tool_id=tool.id)
        now: datetime = breaker.now
        breaker.code = failure.code.wire
        if breaker.state == Breaker.State.OPEN:
            if breaker.trial_until is None:
                return  # it began before the breaker opened
            breaker.failures, breaker.trial_until = breaker.failures + 1, None
            breaker.save()
            Breaker.objects.filter(pk=breaker.pk).update(retry_at=Later(settings.PLACET_BREAKER_PAUSE))
            return
        is_late = breaker.since is None or (now - breaker.since).total_seconds() > settings.PLACET_BREAKER_WINDOW
        if is_late or breaker.since is None:
            breaker.failures, breaker.since = 1, now
        else:
            breaker.failures += 1
        if breaker.failures >= settings.PLACET_BREAKER_FAILURES:
            if _has_succeeded(tool, breaker.since):
                breaker.failures, breaker.since = 1, now
            else:
                _trip(tool, breaker, now)
        breaker.save()
        if breaker.state == Breaker.State.OPEN:
            Breaker.objects.filter(pk=breaker.pk).update(retry_at=Later(settings.PLACET_BREAKER_PAUSE))


def _trip(tool: ToolSpec, breaker: Breaker, now: datetime) -> None:
    breaker.state = Breaker.State.OPEN
    breaker.opened_at = breaker.retry_at = now
    detail = {"tool": tool.tool_id, "failures": breaker.failures, "code": breaker.code}
    subject = f"{tool.toolkit}@{tool.version}"
    trail.record("version", subject, "tool.breaker_opened", actor="system", outcome="failed", detail=detail)
    logger.warning("%s failed %d times in a row: it is left alone for a while", tool.tool_id, breaker.failures)


def _has_succeeded(tool: ToolSpec, since: datetime) -> bool:
    """Successes write nothing about breakers; here, where it matters, they are looked for."""
    recent = Call.objects.filter(tool_id=tool.id).order_by("-id").values_list("state", "finished_at")[:LOOK_BACK]
    return any(state == State.SUCCEEDED and ended is not None and ended > since for state, ended in recent)


def _wait(tool: ToolSpec) -> float:
    """Seconds until a call may try; 0 if it may now."""
    row = Breaker.objects.filter(tool_id=tool.id, state=Breaker.State.OPEN).annotate(now=Now()).first()
    if row is None or row.retry_at is None:
        return 0.0
    until = max(row.retry_at, row.trial_until) if row.trial_until is not None else row.retry_at
    left = (until - row.now).total_seconds()
    return max(0.0, min(left, settings.PLACET_BREAKER_PAUSE))


def _failure(tool: ToolSpec, wait: float) -> Failure:
    return Failure(
        code=ErrorCode.EXECUTION_FAILED,
        message="The tool failed so often in a row that it is left alone for a while",
        developer_message="Nothing was sent to the tool; the same call can come again",
        can_retry=True,
        retry_after_ms=max(1, round(wait * 1000)),
        details={"tool": tool.tool_id, OWN_WORD: "open"},
    )


def _opened() -> frozenset[int]:
    """Read once per revision: the state of breakers is among what moves it."""
    global _open, _read_at
    now = revision.current()
    if now != _read_at:
        found = frozenset(Breaker.objects.filter(state=Breaker.State.OPEN).values_list("tool_id", flat=True))
        with _lock:
            _open, _read_at = found, now
    return _open
