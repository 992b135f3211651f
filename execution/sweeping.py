"""The sweeper: what a broker, a worker or a power cut lost is found in the database and put right."""

from django.conf import settings
from django.db.models import Q
from django.db.models.functions import Now

from execution import callbacks, calls, dispatch, totals
from execution.models import Call, State
from execution.pipeline import answering, pulling
from execution.recovery import recover
from execution.sessions import KIND, hearing
from policy import approvals
from registry.clock import Later

BATCH = 500


def sweep() -> None:
    """Safe to run anywhere, any number of times at once: every move is conditional."""
    _recover_lost()
    approvals.expire_due()
    _expire_waiting()
    _resend_forgotten()
    _look_for_answers()
    pulling.sweep()
    _forget_answers()
    totals.sweep()


def _recover_lost() -> None:
    lost = Call.objects.filter(state=State.RUNNING, lease_until__lt=Now()).select_related("tool")
    if not hearing.is_sound():
        lost = lost.exclude(dispatch=KIND)
    for call in lost[:BATCH]:
        recover(call)


def _expire_waiting() -> None:
    """A call that was approved and not yet begun ends with its approval, just before."""
    late = Call.objects.filter(Q(approval=None) | Q(fence__gt=0), state=State.QUEUED, deadline__lt=Now())
    for call in late[:BATCH]:
        calls.expire(call)


def _resend_forgotten() -> None:
    """Waits longer each time, so that a long queue is not flooded with doubles; sessions look for themselves."""
    forgotten = Call.objects.exclude(dispatch=KIND).filter(
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
