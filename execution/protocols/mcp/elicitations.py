"""Ask, take a turn, remember a link, tell the end: sole writer of elicitations."""

import hashlib
from functools import lru_cache
from uuid import UUID

from django.db import connection
from django.db.models import F

from audit.glance import glance
from execution.models import Call, Elicitation, State
from registry.clock import LATER, Later, later_param

KEPT = 3_600.0  # seconds after its end in which the same call, made again, gets the end of the first
BATCH = 20


def of(call: Call) -> Elicitation:
    """The call's elicitation, made when its client is told for the first time that a person is needed."""
    found, _ = Elicitation.objects.get_or_create(pk=call.pk, defaults={"agent_id": call.agent_id})
    return found


def action_of(call: UUID) -> str:
    """What the person at the client said, or nothing yet."""
    return Elicitation.objects.filter(pk=call).values_list("action", flat=True).first() or ""


def take(call: UUID, turn: int, action: str) -> bool:
    """Whether this retry is the first that comes for its turn; every other one is refused, for good."""
    waiting = Elicitation.objects.filter(pk=call, turn=turn)
    return bool(waiting.update(turn=F("turn") + 1, **({"action": action} if action else {})))


def answer(call: Call, action: str) -> bool:
    """Whether this is the first answer to a task's question; later ones change nothing."""
    of(call)
    return bool(Elicitation.objects.filter(pk=call.pk, action="").update(action=action))


def send_away(call: Call, *, session: str = "") -> None:
    """The client has nothing to come back with: when it makes the same call again, it means this one.

    Unless it named the call itself, for then it knows how to ask for it. The `session` hears it when people have
    decided, if it listens.
    """
    of(call)
    known = {"fingerprint": call.fingerprint, "told_at": None} if call.call_id == str(call.pk) else {}
    asked = {"session": key(session), "announced_at": None} if session else {}
    if known or asked:
        Elicitation.objects.filter(pk=call.pk).update(**known, **asked)


def sent_away(agent: int, fingerprint: str) -> UUID | None:
    """The call whose end the agent asks for by making it again, if it goes on or ended a short while ago."""
    vendor = connection.vendor
    found = glance(_sent_away(vendor), [agent, fingerprint, later_param(vendor, -KEPT)])
    if found is None:
        return None
    return found[0] if isinstance(found[0], UUID) else UUID(found[0])


def tell(call: UUID) -> bool:
    """Whether this is the one who gets the end; whoever makes the same call after that makes a new one."""
    return bool(Elicitation.objects.filter(pk=call, told_at=None).update(told_at=Later(0)))


def announce(session: str) -> list[UUID]:
    """The calls of this session, by its key, that people have decided since; each is told to one listener, once."""
    open_ones = Elicitation.objects.filter(session=session, announced_at=None)
    decided = open_ones.exclude(call__state=State.AWAITING_APPROVAL).values_list("pk", flat=True)[:BATCH]
    return [id for id in list(decided) if open_ones.filter(pk=id).update(announced_at=Later(0))]


def key(session: str) -> str:
    """As sessions are stored: an id is known to its client only."""
    return hashlib.sha256(session.encode()).hexdigest()


@lru_cache(maxsize=2)
def _sent_away(vendor: str) -> str:
    calls, told = Call._meta.db_table, Elicitation._meta.db_table
    return (
        f'SELECT e."call_id" FROM "{told}" e JOIN "{calls}" c ON c."id" = e."call_id" '
        f'WHERE e."agent_id" = %s AND e."fingerprint" = %s AND e."told_at" IS NULL '
        f'AND (c."finished_at" IS NULL OR c."finished_at" > {LATER[vendor]}) ORDER BY e."call_id" DESC LIMIT 1'
    )
