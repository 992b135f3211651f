"""Celery's entry points: ids in, one call, nothing out."""

from uuid import UUID

from celery import shared_task


@shared_task(name="execution.perform_call")
def perform_call(call_id: str) -> None:
    from execution.pipeline.perform import perform

    perform(UUID(call_id))


@shared_task(name="execution.look_for_answer", acks_late=False)
def look_for_answer(callback: int) -> None:
    from execution.pipeline.answering import look

    look(callback)


@shared_task(name="execution.sweep", acks_late=False)
def sweep() -> None:
    from execution.sweeping import sweep as sweep_now

    sweep_now()


@shared_task(name="execution.seal", acks_late=False)
def seal() -> None:
    from audit.sealing import seal_new_events

    seal_new_events()


@shared_task(name="execution.make_pack")
def make_pack(id: str) -> None:
    from execution.packs import work_off

    work_off(UUID(id))


@shared_task(name="execution.sweep_packs", acks_late=False)
def sweep_packs() -> None:
    from execution.packs import sweep

    sweep()
