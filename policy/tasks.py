"""Celery's entry points of policy: one call each, nothing out."""

from celery import shared_task


@shared_task(name="policy.deliver_notices", acks_late=False)
def deliver_notices() -> None:
    from policy.delivery import deliver

    deliver()
