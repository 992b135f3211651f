"""News from policy: an approval moved, so its call moves in the same transaction."""

from typing import Any

from django.db import transaction
from django.dispatch import receiver

from execution import dispatch, parking
from policy.models import Approval
from policy.signals import approval_moved


@receiver(approval_moved)
def follow_approval(approval: Approval, **_: Any) -> None:
    """Resume the parked call, park it again, or end it."""
    if approval.state == Approval.State.APPROVED:
        if parking.resume(approval):
            transaction.on_commit(lambda: dispatch.send(approval.call))
    elif approval.state == Approval.State.PENDING:
        parking.park_again(approval)
    elif (refusal := parking.refusal_of(approval)) is not None:
        parking.end(approval, *refusal)
