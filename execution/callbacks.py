"""The waits for late answers: sole writer of callbacks. Each starts open and is moved once."""

import hashlib
from collections.abc import Callable
from uuid import UUID

import orjson
from django.db import transaction
from django.db.models import Case, F, QuerySet, When
from django.db.models.functions import Now

from execution.claim import Claim
from execution.models import Callback, State
from execution.returnaddress import ReturnAddress, new_token, return_address
from execution.traffic import Traffic
from policy.sealedbox import Unsealable, seal, unseal
from registry.clock import Later

KIND = "webhook-callback"
POLL_EVERY = 2.0  # seconds
POLL_PATIENCE = 10.0  # seconds that one look may take
EARLY = 0.25  # seconds by which a worker's clock may be ahead of the database's
FORGOTTEN = 3.0  # seconds after which a look that was due is taken for lost
MAX_REFUSED = 20  # refused answers that are recorded for each; whoever repeats them endlessly fills no trail
MAX_ATTEMPTS = 50  # callbacks of one request id that a signature is tried on
BATCH = 200

_SETTLED = {"next_poll_at": None, "sealed_needles": None}


def expect(claim: Claim) -> ReturnAddress:
    """Where this attempt's answer may be sent; on record before the tool learns of it. Asked again, the same."""
    row = Callback.objects.filter(call_id=claim.id, fence=claim.fence).first()
    token = token_of(row) if row is not None else new_token()
    claim.needles["callback_token"] = token
    needles = seal(orjson.dumps(dict(claim.needles)), bound_to=needles_box(claim.id, claim.fence))
    if row is not None:
        Callback.objects.filter(pk=row.pk, state=Callback.State.OPEN).update(sealed_needles=needles)
    else:
        Callback.objects.create(
            call_id=claim.id,
            fence=claim.fence,
            request_id=claim.call_id,
            endpoint=claim.tool.runtime.options["endpoint"],
            token_hash=hashed(token),
            sealed_token=seal(token.encode(), bound_to=token_box(claim.id, claim.fence)),
            sealed_needles=needles,
            deadline=Later(claim.tool.runtime.timeout),
        )
    return return_address(claim.call_id, token)


def await_answer(claim: Claim, traffic: Traffic) -> None:
    """The tool took the call and will answer; from now on it is also asked for it."""
    waiting = Callback.objects.filter(call_id=claim.id, fence=claim.fence, state=Callback.State.OPEN)
    waiting.update(next_poll_at=Later(POLL_EVERY), **_counted(traffic))


def number_of(claim: Claim) -> int:
    return Callback.objects.values_list("pk", flat=True).get(call_id=claim.id, fence=claim.fence)


def held(pk: int) -> Callback:
    """The row, held until the transaction ends; its call's must be held already."""
    return Callback.objects.select_for_update().get(pk=pk)


def settle(row: Callback, state: Callback.State, digest: str = "") -> bool:
    """Whether it was open, and has now ended in this way."""
    still = Callback.objects.filter(pk=row.pk, state=Callback.State.OPEN)
    return bool(still.update(state=state, answer_digest=digest, **_SETTLED))


def close(call: UUID, fence: int) -> None:
    """The attempt ended otherwise: nobody waits for its answer any more."""
    still = Callback.objects.filter(call_id=call, fence=fence, state=Callback.State.OPEN)
    still.update(state=Callback.State.CLOSED, **_SETTLED)


def traffic_of(row: Callback) -> Traffic:
    """What went over the network for it so far: the request, and each look."""
    return Traffic(row.sent, row.received, row.upstream_status)


def is_late(row: Callback) -> bool:
    """Whether its time is over, by the database's clock."""
    return not Callback.objects.filter(pk=row.pk, deadline__gt=Now()).exists()


def take_poll(pk: int) -> Callback | None:
    """The row, if it is due to be asked for and nobody else asks just now."""
    due = Callback.objects.filter(pk=pk, state=Callback.State.OPEN, next_poll_at__lte=Later(EARLY))
    if not due.update(next_poll_at=Later(POLL_PATIENCE + POLL_EVERY), polls=F("polls") + 1):
        return None
    return Callback.objects.get(pk=pk)


def polled(row: Callback, traffic: Traffic, *, delay: float = POLL_EVERY, is_failed: bool = False) -> None:
    """There is no answer yet, or it could not be asked for."""
    still = Callback.objects.filter(pk=row.pk, state=Callback.State.OPEN)
    still.update(next_poll_at=Later(delay), failed_polls=F("failed_polls") + int(is_failed), **_counted(traffic))


def note_refused(row: Callback) -> bool:
    """Counts an answer that came too late or once too often; whether it is still worth an event."""
    return bool(Callback.objects.filter(pk=row.pk, refused__lt=MAX_REFUSED).update(refused=F("refused") + 1))


def overdue() -> QuerySet[Callback]:
    """Open ones whose time is over; while their worker still talks to the tool, it keeps the time itself."""
    late = Callback.objects.filter(state=Callback.State.OPEN, deadline__lt=Now())
    return late.exclude(call__state=State.RUNNING).order_by("deadline")


def forgotten() -> list[int]:
    """Those that should have been asked for long ago; each is told once in a while."""
    lost = Callback.objects.filter(state=Callback.State.OPEN, next_poll_at__lt=Later(-FORGOTTEN))
    found = list(lost.order_by("next_poll_at").values_list("pk", flat=True)[:BATCH])
    return [pk for pk in found if lost.filter(pk=pk).update(next_poll_at=Later(0))]


def of_attempt(call: UUID, fence: int) -> Callback:
    return Callback.objects.get(call_id=call, fence=fence)


def of_request(request_id: str) -> QuerySet[Callback]:
    return Callback.objects.filter(request_id=request_id)


def with_token(rows: QuerySet[Callback], token: str) -> Callback | None:
    """The one that this token was made for."""
    return rows.filter(token_hash=hashed(token)).first()


def proven(rows: QuerySet[Callback], proves: Callable[[str], bool]) -> Callback | None:
    """The one whose token the sender knows; agents may use the same id, so those that still wait are tried first."""
    waiting_first = Case(When(state=Callback.State.OPEN, then=0), default=1)
    for row in rows.order_by(waiting_first, "-pk")[:MAX_ATTEMPTS]:
        try:
            if proves(token_of(row)):
                return row
        except Unsealable:
            continue  # its key is gone; nobody can prove anything about it
    return None


def token_of(row: Callback) -> str:
    return unseal(row.sealed_token, bound_to=token_box(row.call_id, row.fence)).decode()


def needles_of(row: Callback) -> dict[str, str]:
    """What was secret in the attempt that asked; nothing once it has ended."""
    if row.sealed_needles is None:
        return {}
    needles: dict[str, str] = orjson.loads(unseal(row.sealed_needles, bound_to=needles_box(row.call_id, row.fence)))
    return needles


def know(row: Callback, claim: Claim) -> None:
    """Secrets that were resolved for a look join those that an answer must not show."""
    sealed = seal(orjson.dumps(dict(claim.needles)), bound_to=needles_box(row.call_id, row.fence))
    with transaction.atomic():
        Callback.objects.filter(pk=row.pk, state=Callback.State.OPEN).update(sealed_needles=sealed)


def hashed(token: str) -> str:
    return hashlib.sha256(token.encode()).hexdigest()


def token_box(call: UUID, fence: int) -> str:
    """The name of the place that a token is sealed for."""
    return f"execution.callback:{call}:{fence}:token"


def needles_box(call: UUID, fence: int) -> str:
    """The name of the place that the secrets of a waiting attempt are sealed for."""
    return f"execution.callback:{call}:{fence}:needles"


def _counted(traffic: Traffic) -> dict[str, object]:
    more: dict[str, object] = {"sent": F("sent") + traffic.sent, "received": F("received") + traffic.received}
    return more | {"upstream_status": traffic.status[:40]} if traffic.status else more
