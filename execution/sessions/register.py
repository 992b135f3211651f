"""The register of sessions: opened, found, listed and closed; sole writer of sessions."""

from collections.abc import Iterable
from datetime import timedelta
from typing import NamedTuple

from django.conf import settings
from django.db import transaction
from django.db.models import Exists, F, OuterRef, QuerySet
from django.db.models.functions import Now
from django.utils import timezone

from audit import trail
from execution.models import Pull, Session, State
from policy.caller import Caller
from policy.models import Agent
from policy.visibility import served_toolkits
from registry.clock import Later

BATCH = 200


class TooMany(Exception):
    """The caller has as many sessions open as it may have."""


class Served(NamedTuple):
    """A session of the caller, and the toolkits that it serves and that the caller may serve today."""

    session: Session
    toolkits: frozenset[int]


@transaction.atomic
def open(caller: Caller, toolkits: Iterable[int], names: Iterable[str]) -> Session:
    """A new session; the caller was asked for its permission already."""
    Agent.objects.select_for_update(no_key=True).get(pk=caller.agent_id)  # of two at once, one is the last
    if Session.objects.filter(agent_id=caller.agent_id).count() >= settings.PLACET_MAX_SESSIONS:
        raise TooMany
    session = Session.objects.create(agent_id=caller.agent_id)
    session.toolkits.set(toolkits)
    _tell(caller.name, "session.opened", session, serves=sorted(names))
    session.refresh_from_db()
    return session


def of_caller(caller: Caller) -> QuerySet[Session]:
    """Newest first."""
    return Session.objects.filter(agent_id=caller.agent_id).prefetch_related("toolkits")


def find(caller: Caller, id: str) -> Served | None:
    """The caller's own session; those of others it cannot tell from none."""
    if "\0" in id:
        return None
    session = of_caller(caller).filter(pk=id).first()
    if session is None:
        return None
    return Served(session, frozenset(kit.pk for kit in session.toolkits.all()) & served_toolkits(caller))


def hold(session: Session) -> bool:
    """Whether it is still open; if so, it stays open until this transaction ends."""
    return Session.objects.select_for_update().filter(pk=session.pk).exists()


def note_seen(session: Session) -> None:
    """A sign of life; written only now and then."""
    if timezone.now() - session.seen_at > timedelta(seconds=settings.PLACET_SESSION_IDLE / 20):
        Session.objects.filter(pk=session.pk).update(seen_at=Now())


def idle() -> QuerySet[Session]:
    """Those that nobody has used for long, and that hold nothing."""
    holding = Pull.objects.filter(session=OuterRef("pk"), call__state=State.RUNNING, call__fence=F("fence"))
    return Session.objects.filter(~Exists(holding), seen_at__lt=Later(-settings.PLACET_SESSION_IDLE))


def remove(session: Session, *, why: str) -> None:
    """Inside the transaction in which it was held, and what it held let go."""
    name = Agent.objects.values_list("name", flat=True).get(pk=session.agent_id)
    _tell(name, "session.closed", session, why=why)
    Session.objects.filter(pk=session.pk).delete()


def is_served(toolkit: int) -> bool:
    return Session.objects.filter(toolkits=toolkit).exists()


def _tell(agent: str, event: str, session: Session, **detail: object) -> None:
    trail.record("agent", agent, event, actor=f"agent:{agent}", detail={"session": session.pk, **detail})
