"""Celery's entry points of policy: one call each, nothing out."""

from uuid import UUID

from celery import shared_task


@shared_task(name="policy.deliver_notices", acks_late=False)
def deliver_notices() -> None:
    from policy.delivery import deliver

    deliver()


@shared_task(name="policy.run_replay")
def run_replay(id: str) -> None:
    from policy.replays import work_off

    work_off(UUID(id))


@shared_task(name="policy.sweep_replays", acks_late=False)
def sweep_replays() -> None:
    from policy.replays import sweep

    sweep()
