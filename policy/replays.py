"""Replays: asked for, taken by one worker, worked off: sole writer of replays.

A worker holds a lease that each step of progress renews. Whose lease has run out is lost: the replay is taken again
from its start, by the next worker, until a third one is lost too; then it has failed.
"""

import logging
import time
from typing import Any
from uuid import UUID

from django.contrib.auth.models import User
from django.db import transaction
from django.db.models import F, Q
from django.db.models.functions import Now

from audit import trail
from policy import rulesets
from policy.models import Replay, Revision
from policy.replay import Progress, replayed
from registry.actors import actor
from registry.clock import Later

logger = logging.getLogger(__name__)

MAX_LAST = 100_000  # recorded calls in one replay
MAX_OPEN = 3  # replays one person may have under way
MAX_ATTEMPTS = 3
LEASE = 30.0  # seconds without a sign of life after which a worker is lost
SEND_AGAIN = 15.0  # seconds after which we doubt that the broker still has the message
TELL_EVERY = 0.25  # seconds between two signs of progress
KEPT_DAYS = 30

_OPEN = (Replay.State.WAITING, Replay.State.RUNNING)


class ReplayError(Exception):
    """Why no replay is made; a sentence."""


class _Lost(Exception):
    """Someone else has taken the replay over."""


def ask(number: int, last: int, *, by: User) -> Replay:
    """A replay that a worker will take; the caller has seen that the revision exists."""
    if Replay.objects.filter(requested_by=by, state__in=_OPEN).count() >= MAX_OPEN:
        raise ReplayError(f"You have {MAX_OPEN} replays under way already; wait until one has ended.")
    with transaction.atomic():
        made = Replay.objects.create(revision=number, last=last, requested_by=by)
        trail.record("policy", str(number), "policy.replayed", actor=actor(by), detail={"last": last})
        transaction.on_commit(lambda: send(made.pk))
    return made


def send(id: UUID) -> None:
    """Wake a worker, if the broker is there; else the sweeper tries again."""
    from policy.tasks import run_replay

    try:
        run_replay.apply_async(args=[str(id)], expires=SEND_AGAIN)
    except Exception as error:  # each kind of broker fails in its own way; the row waits for the sweeper
        logger.warning("the broker is away (%s); the sweeper will send replay %s", type(error).__name__, id)


def wait_for(id: UUID, *, patience: float) -> Replay:
    """The replay as soon as it has ended, or as it is when patience ends."""
    until, pause = time.monotonic() + patience, 0.02
    while True:
        found = Replay.objects.get(pk=id)
        left = until - time.monotonic()
        if found.state not in _OPEN or left <= 0:
            return found
        time.sleep(min(left, pause))
        pause = min(pause * 1.5, 0.5)


def work_off(id: UUID) -> None:
    """Judge the recorded calls anew, unless someone else does or it has ended."""
    taken = _take(id)
    if taken is None:
        return
    try:
        report = replayed(rulesets.rules_numbered(taken.revision), taken.last, on_progress=_teller(taken))
    except _Lost:
        logger.warning("replay %s was taken over by another worker", id)
    except Revision.DoesNotExist:
        _end(taken, state=Replay.State.FAILED, error=f"There is no policy revision {taken.revision} any more.")
    except Exception:
        logger.exception("replay %s failed", id)
        _end(taken, state=Replay.State.FAILED, error="Placet failed to replay; the log of the worker says why.")
    else:
        _end(taken, state=Replay.State.DONE, result=report, evaluated=report["evaluated"], total=report["evaluated"])


def sweep() -> None:
    """What a broker or a worker lost is sent again, a bounded number of times; old results are forgotten."""
    lost = Replay.objects.filter(state=Replay.State.RUNNING, lease_until__lt=Now())
    lost.filter(attempts__gte=MAX_ATTEMPTS).update(
        state=Replay.State.FAILED,
        error=f"Each of {MAX_ATTEMPTS} workers that took it was lost; try fewer calls.",
        lease_until=None,
        finished_at=Now(),
    )
    forgotten = Q(state=Replay.State.WAITING, created_at__lt=Later(-SEND_AGAIN))
    again = Replay.objects.filter(forgotten | Q(state=Replay.State.RUNNING, lease_until__lt=Now()))
    for id in list(again.order_by("id").values_list("pk", flat=True)[:100]):
        send(id)
    Replay.objects.filter(finished_at__lt=Later(-KEPT_DAYS * 86_400)).delete()


def _take(id: UUID) -> Replay | None:
    free = Q(state=Replay.State.WAITING) | Q(state=Replay.State.RUNNING, lease_until__lt=Now())
    with transaction.atomic():
        taken = Replay.objects.filter(free, pk=id, attempts__lt=MAX_ATTEMPTS).update(
            state=Replay.State.RUNNING, attempts=F("attempts") + 1, lease_until=Later(LEASE), evaluated=0
        )
        return Replay.objects.get(pk=id) if taken else None


def _teller(taken: Replay) -> Progress:
    """Tells of progress, which renews the lease; often enough to be watched, seldom enough to cost nothing."""
    told_at = 0.0

    def tell(evaluated: int, total: int) -> None:
        nonlocal told_at
        if time.monotonic() - told_at < TELL_EVERY:
            return
        told_at = time.monotonic()
        if not _held(taken).update(evaluated=evaluated, total=total, lease_until=Later(LEASE)):
            raise _Lost

    return tell


def _end(taken: Replay, **fields: Any) -> None:
    if not _held(taken).update(lease_until=None, finished_at=Now(), **fields):
        logger.warning("replay %s ended after it was taken over; its result is dropped", taken.pk)


def _held(taken: Replay) -> Any:
    """The row as long as it is this worker's: the number of the attempt is its fence."""
    return Replay.objects.filter(pk=taken.pk, state=Replay.State.RUNNING, attempts=taken.attempts)
