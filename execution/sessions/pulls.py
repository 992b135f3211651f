"""What sessions hold: taken, kept alive by heartbeats, found again; sole writer of pulls.

A pull is in force while its call runs under its fence. Nothing has to end it: the call's next move does.
"""

from collections.abc import Collection, Iterable
from functools import lru_cache
from uuid import UUID

from django.conf import settings
from django.db import connection
from django.db.models import F, QuerySet

from audit import guarded
from execution.claim import Claim
from execution.models import OPEN, Call, Pull, Session, State
from execution.sessions import hearing
from registry.clock import LATER, Later, later_param

MAX_REFUSED = 20  # late answers that are recorded for each
KEPT = 86_400.0  # seconds that pulls of ended calls are remembered
BATCH = 500


def begin(claim: Claim, session: Session) -> None:
    """In the transaction of the claim."""
    Pull.objects.create(
        call_id=claim.id,
        fence=claim.fence,
        session=session,
        agent_id=session.agent_id,
        toolkit_id=claim.tool.toolkit_id,
        deadline=Later(claim.tool.runtime.timeout),
    )


def beat(call: UUID, session: str, agent: int, toolkits: Collection[int]) -> bool:
    """Whether the session holds the call, in time and wanted; if so its lease begins anew. One statement.

    A lease that is over is renewed too: as long as the fence is the session's, nobody has given the call up.
    """
    if not toolkits or "\0" in session:
        return False
    vendor = connection.vendor
    id, lease = call.hex if vendor == "sqlite" else call, later_param(vendor, settings.PLACET_LEASE)
    latest = later_param(vendor, -_overtime())
    return guarded.write(_beat_sql(vendor, len(toolkits)), [lease, id, session, agent, latest, *sorted(toolkits)])


@lru_cache(maxsize=64)
def _beat_sql(vendor: str, toolkits: int) -> str:
    call, pull, later = Call._meta.db_table, Pull._meta.db_table, LATER[vendor]
    return (
        f'UPDATE "{call}" SET "lease_until" = {later} WHERE "id" = %s AND "state" = \'{State.RUNNING.value}\''
        f' AND NOT "cancel_requested" AND EXISTS (SELECT 1 FROM "{pull}" p'
        f' WHERE p."call_id" = "{call}"."id" AND p."fence" = "{call}"."fence" AND p."session_id" = %s'
        f' AND p."agent_id" = %s AND p."deadline" > {later} AND p."toolkit_id" IN ({", ".join(["%s"] * toolkits)}))'
    )


def of(call: Call) -> Pull | None:
    """The one under the call's fence, if a session took that attempt."""
    return Pull.objects.filter(call_id=call.pk, fence=call.fence).first()


def last_of(call: Call, session: Session) -> Pull | None:
    """The newest attempt of the call that this session ever held."""
    return Pull.objects.filter(call_id=call.pk, session=session).order_by("-fence").first()


def held_by(session: Session) -> QuerySet[Pull]:
    """In force, oldest first."""
    return Pull.objects.filter(session=session, call__state=State.RUNNING, call__fence=F("fence")).order_by("pk")


def ended_by(session: Session) -> QuerySet[Pull, UUID]:
    """The calls that ended, or will, with an attempt of this session."""
    return Pull.objects.filter(session=session, call__fence=F("fence")).values_list("call_id", flat=True)


def is_silent(call: Call) -> bool:
    """Whether its holder's lease is over, by the database's clock."""
    return Call.objects.filter(pk=call.pk, state=State.RUNNING, fence=call.fence, lease_until__lt=Later(0)).exists()


def overdue() -> QuerySet[Pull]:
    """In force although the attempt's time is over, by the database's clock."""
    late = Pull.objects.filter(deadline__lt=Later(-_overtime()), call__state=State.RUNNING, call__fence=F("fence"))
    return late.filter(call__state__in=OPEN).order_by("deadline")


def _overtime() -> float:
    """Seconds past its time that an attempt still has: what ended while nobody could hear of it may yet be told."""
    return 0.0 if hearing.is_sound() else KEPT


def must_hear_of_it(call: Call, session: Session) -> bool:
    """Whether the session lost the call and may not know: a heartbeat of then must not take it now."""
    return Pull.objects.filter(call_id=call.pk, session=session, is_offered_again=False).exists()


def note_offered(calls: Iterable[Call], session: Session) -> None:
    """The session is told that these calls are to be had once more."""
    again = [call.pk for call in calls if call.fence]
    if again:
        Pull.objects.filter(session=session, call_id__in=again, is_offered_again=False).update(is_offered_again=True)


def note_refused(pull: Pull) -> bool:
    """Counts an answer that came too late; whether it is still worth an event."""
    return bool(Pull.objects.filter(pk=pull.pk, refused__lt=MAX_REFUSED).update(refused=F("refused") + 1))


def let_go(session: Session) -> list[UUID]:
    """The leases of all that it holds are over; the ids of those calls."""
    held = list(held_by(session).values_list("call_id", "fence"))
    for call, fence in held:
        Call.objects.filter(pk=call, fence=fence, state=State.RUNNING).update(lease_until=Later(-1))
    return [call for call, _ in held]


def forget() -> None:
    """Those of calls that ended long ago."""
    old = Pull.objects.filter(claimed_at__lt=Later(-KEPT)).exclude(call__state__in=OPEN)
    Pull.objects.filter(pk__in=list(old.values_list("pk", flat=True)[:BATCH])).delete()
