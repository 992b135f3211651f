"""The sweeper: what a broker, a worker or a power cut lost is found in the database and put right."""

import logging

from django.conf import settings
from django.db.models import Q
from django.db.models.functions import Now

from execution import callbacks, calls, dispatch, losses
from execution.errors import ErrorCode, Failure
from execution.models import Call, State
from execution.pipeline import answering
from execution.retries import REPEATABLE
from policy import approvals
from registry.clock import Later

logger = logging.getLogger(__name__)

BATCH = 500
MAX_LOST = 3  # a call that cost so many workers is not tried again


def sweep() -> None:
    """Safe to run anywhere, any number of times at once: every move is conditional."""
    _recover_lost()
    approvals.expire_due()
    _expire_waiting()
    _resend_forgotten()
    _look_for_answers()
    _forget_answers()


def _recover_lost() -> None:
    lost = Call.objects.filter(state=State.RUNNING, lease_until__lt=Now()).select_related("tool")[:BATCH]
    for call in lost:
        idempotency = call.tool.idempotency if call.tool is not None else "non_idempotent"
        if idempotency not in REPEATABLE:
            if losses.give_up(call, _unknown(), state=State.UNKNOWN):
                logger.error("call %s of %s: its worker was lost; a person must say", call.pk, call.tool_ref)
        elif call.fence >= MAX_LOST:
            losses.give_up(call, _poisoned(), state=State.FAILED)
        elif losses.requeue(call):
            logger.warning("call %s of %s: its worker was lost, it is queued again", call.pk, call.tool_ref)
            dispatch.send(call.pk)


def _expire_waiting() -> None:
    """A call that was approved and not yet begun ends with its approval, just before."""
    late = Call.objects.filter(Q(approval=None) | Q(fence__gt=0), state=State.QUEUED, deadline__lt=Now())
    for call in late[:BATCH]:
        calls.expire(call)


def _resend_forgotten() -> None:
    """Waits longer each time, so that a long queue is not flooded with doubles."""
    forgotten = Call.objects.filter(
        Q(not_before=None) | Q(not_before__lte=Now()), state=State.QUEUED, resend_at__lt=Now()
    )
    for pk in list(forgotten.order_by("id").values_list("pk", flat=True)[:BATCH]):
        if Call.objects.filter(pk=pk, state=State.QUEUED, resend_at__lt=Now()).update(
            resend_at=Later(settings.PLACET_SWEEP * 3)
        ) and not dispatch.send(pk):
            Call.objects.filter(pk=pk, state=State.QUEUED).update(resend_at=Later(0))
            return  # the broker is away; the next round tries again


def _look_for_answers() -> None:
    """Tools that answer later: those that had their time, and those that nobody has asked since they should be."""
    for row in callbacks.overdue()[:BATCH]:
        answering.expire(row)
    for pk in callbacks.forgotten():
        if not dispatch.look(pk):
            return


def _forget_answers() -> None:
    """The exact form of an answer is kept sealed only while its caller may still ask for it again."""
    old = Call.objects.filter(sealed_answer__isnull=False, finished_at__lt=Later(-settings.PLACET_ANSWER_DAYS * 86_400))
    ids = list(old.values_list("pk", flat=True)[:BATCH])
    if ids:
        Call.objects.filter(pk__in=ids).update(sealed_answer=None)


def _unknown() -> Failure:
    return Failure(
        code=ErrorCode.OUTCOME_UNKNOWN,
        message="The worker was lost while the tool ran; it may or may not have had its effect",
        developer_message="The tool is not idempotent, so it is not run again by itself; a person settles the call",
    )


def _poisoned() -> Failure:
    return Failure(
        code=ErrorCode.EXECUTION_FAILED,
        message="The call was given up because each attempt lost its worker",
        details={"reason": "poisoned", "attempts": MAX_LOST},
    )
