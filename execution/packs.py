"""Packs: asked for, written by one worker, downloaded, deleted after a day: sole writer of packs and their files.

A worker holds a lease that each step of progress renews; a pack whose worker was lost is begun again by the next one.
"""

import hashlib
import logging
import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO, Any
from uuid import UUID

from django.conf import settings
from django.contrib.auth.models import User
from django.db import transaction
from django.db.models import F, Q
from django.db.models.functions import Now

from audit import exports, sealing, trail
from audit.packfile import TooLarge
from execution.models import Pack
from execution.scope import FilterError, Scope
from execution.viewer import Viewer
from policy.caller import Caller
from registry.actors import actor
from registry.clock import Later

logger = logging.getLogger(__name__)

MAX_EVENTS = 1_000_000
MAX_OPEN = 3  # packs one person or agent may have under way
MAX_ATTEMPTS = 3
LEASE = 60.0  # seconds without a sign of life after which a worker is lost
SEND_AGAIN = 15.0
TELL_EVERY = 0.25
KEPT_SECONDS = 86_400

GONE = (
    "The file is gone, is on another machine, or holds what you may no longer see; ask for a new one. "
    "Web and workers on different machines need one PLACET_HOME/packs."
)
_OPEN = (Pack.State.WAITING, Pack.State.RUNNING)


class PackError(Exception):
    """Why no pack is made; a sentence."""


class _Lost(Exception):
    """Someone else has taken the pack over."""


def ask(scope: Scope, *, by: User, caller: Caller | None = None, form: str = Pack.Form.ZIP) -> Pack:
    """A pack that a worker will write; the filters have been read, and the call is one that the asker may see."""
    scope.events(Viewer(user=by, caller=caller))
    if Pack.objects.filter(requested_by=by, state__in=_OPEN).count() >= MAX_OPEN:
        raise PackError(f"You have {MAX_OPEN} packs under way already; wait until one is made.")
    with transaction.atomic():
        made = Pack.objects.create(
            form=form,
            call_id=scope.call,
            filters=scope.filters,
            requested_by=by,
            agent_id=caller.agent_id if caller else None,
        )
        # About the pack, not about the call: asking must not change what is asked for.
        detail = {"form": str(form), **scope.told()}
        trail.record("pack", str(made.pk), "pack.asked", actor=actor(by), detail=detail)
        transaction.on_commit(lambda: send(made.pk))
    return made


def send(id: UUID) -> None:
    """Wake a worker, if the broker is there; else the sweeper tries again."""
    from execution.tasks import make_pack

    try:
        make_pack.apply_async(args=[str(id)], expires=SEND_AGAIN)
    except Exception as error:  # each kind of broker fails in its own way; the row waits for the sweeper
        logger.warning("the broker is away (%s); the sweeper will send pack %s", type(error).__name__, id)


def work_off(id: UUID) -> None:
    """Write the file, unless someone else does or it is there."""
    taken = _take(id)
    if taken is None:
        return
    try:
        sealing.seal_new_events()  # what is asked for now should be provable now
        facts = _written(taken)
    except _Lost:
        logger.warning("pack %s was taken over by another worker", id)
    except (PackError, FilterError) as error:
        _end(taken, state=Pack.State.FAILED, error=str(error)[:300])
    except TooLarge:
        _end(taken, state=Pack.State.FAILED, error="One file of it would be over 2 GB; ask for less at a time.")
    except Exception:
        logger.exception("pack %s failed", id)
        _end(taken, state=Pack.State.FAILED, error="Placet failed to make it; the log of the worker says why.")
    else:
        _end(taken, state=Pack.State.DONE, **facts)


def viewer_of(pack: Pack) -> Viewer:
    """The eyes of whoever asked, with the rights they have now."""
    agent = pack.agent
    caller = None
    if agent is not None:
        caller = Caller(agent_id=agent.pk, name=agent.name, user_id=agent.user_id, credential="pack")
    return Viewer(user=pack.requested_by, caller=caller)


def opened(pack: Pack) -> IO[bytes] | None:
    """The file of a pack that is done, if it is on this machine and who asked may still see all that is in it."""
    if pack.state != Pack.State.DONE or not is_still_theirs(pack):
        return None
    try:
        return path_of(pack).open("rb")
    except FileNotFoundError:
        return None


def is_still_theirs(pack: Pack) -> bool:
    """Events never change, so who sees what is decided as it was then still sees all of them."""
    return bool(pack.requested_by.is_active) and viewer_of(pack).sight() == pack.sight


def scope_of(pack: Pack) -> Scope:
    return Scope(call=pack.call_id, filters=pack.filters)


def path_of(pack: Pack) -> Path:
    return folder() / f"{pack.pk}.{pack.form}"


def folder() -> Path:
    """Where the files are, closed to others."""
    place = Path(settings.PLACET_HOME) / "packs"
    place.mkdir(mode=0o700, parents=True, exist_ok=True)
    return place


def sweep() -> None:
    """What was lost is sent again, a bounded number of times; what is a day old is deleted, the file first."""
    lost = Pack.objects.filter(state=Pack.State.RUNNING, lease_until__lt=Now())
    lost.filter(attempts__gte=MAX_ATTEMPTS).update(
        state=Pack.State.FAILED,
        error=f"Each of {MAX_ATTEMPTS} workers that took it was lost; ask for less at a time.",
        lease_until=None,
        finished_at=Now(),
    )
    forgotten = Q(state=Pack.State.WAITING, created_at__lt=Later(-SEND_AGAIN))
    again = Pack.objects.filter(forgotten | Q(state=Pack.State.RUNNING, lease_until__lt=Now()))
    for id in list(again.order_by("id").values_list("pk", flat=True)[:100]):
        send(id)
    for pack in Pack.objects.filter(finished_at__lt=Later(-KEPT_SECONDS))[:500]:
        path_of(pack).unlink(missing_ok=True)
        pack.delete()
    _remove_strays()


def _remove_strays() -> None:
    """Files without a row: of workers that were lost, and of packs that were deleted elsewhere."""
    before = time.time() - KEPT_SECONDS
    for path in folder().iterdir():
        if path.is_file() and path.stat().st_mtime < before:
            path.unlink(missing_ok=True)


def _written(taken: Pack) -> dict[str, Any]:
    """Beside its name first, then under it at once: nobody downloads half a file."""
    viewer, scope = viewer_of(taken), scope_of(taken)
    sight = viewer.sight()  # before anything is read: who loses a right meanwhile has lost the file
    total = scope.events(viewer).order_by().count()
    if total > MAX_EVENTS:
        raise PackError(f"{total} events are more than the {MAX_EVENTS} that go into one file; narrow the filters.")
    tell = _teller(taken, total)
    tell(0)
    part = path_of(taken).with_suffix(f".{taken.attempts}.part")
    handle = os.open(part, os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
    try:
        with os.fdopen(handle, "w+b") as file:
            events = _fill(file, taken, scope, viewer, tell)
            file.flush()
            os.fsync(file.fileno())
        size, digest = _measured(part)
        part.rename(path_of(taken))
    finally:
        part.unlink(missing_ok=True)
    return {"total": events, "done": events, "sight": sight, "size": size, "sha256": digest}


def _fill(file: IO[bytes], taken: Pack, scope: Scope, viewer: Viewer, tell: Callable[[int], None]) -> int:
    """The content; how many events it holds."""
    if taken.form == Pack.Form.ZIP:
        from execution.evidence import write_pack  # here: it loads the API, which a worker seldom needs

        return write_pack(file, scope, viewer, on_progress=tell).events
    events = 0

    def counted() -> Iterator[dict[str, Any]]:
        nonlocal events
        for row in exports.rows(scope.events(viewer)):
            events += 1
            if events % 1_000 == 0:
                tell(events)
            yield row

    _, write = exports.FORMS[taken.form]
    for piece in write(counted()):
        file.write(piece)
    return events


def _measured(path: Path) -> tuple[int, str]:
    with path.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
        return file.tell(), digest


def _take(id: UUID) -> Pack | None:
    free = Q(state=Pack.State.WAITING) | Q(state=Pack.State.RUNNING, lease_until__lt=Now())
    with transaction.atomic():
        taken = Pack.objects.filter(free, pk=id, attempts__lt=MAX_ATTEMPTS).update(
            state=Pack.State.RUNNING, attempts=F("attempts") + 1, lease_until=Later(LEASE), done=0
        )
        return Pack.objects.select_related("requested_by", "agent").get(pk=id) if taken else None


def _teller(taken: Pack, total: int) -> Callable[[int], None]:
    """Tells of progress, which renews the lease; often enough to be watched, seldom enough to cost nothing."""
    told_at = 0.0

    def tell(done: int) -> None:
        nonlocal told_at
        if time.monotonic() - told_at < TELL_EVERY:
            return
        told_at = time.monotonic()
        if not _held(taken).update(done=min(done, total), total=total, lease_until=Later(LEASE)):
            raise _Lost

    return tell


def _end(taken: Pack, **fields: Any) -> None:
    if not _held(taken).update(lease_until=None, finished_at=Now(), **fields):
        logger.warning("pack %s ended after it was taken over", taken.pk)


def _held(taken: Pack) -> Any:
    """The row as long as it is this worker's: the number of the attempt is its fence."""
    return Pack.objects.filter(pk=taken.pk, state=Pack.State.RUNNING, attempts=taken.attempts)
