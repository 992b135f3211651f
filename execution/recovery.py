"""A running call whose lease is over: its idempotency says whether it may run again."""

import logging

from execution import dispatch, losses
from execution.errors import ErrorCode, Failure
from execution.models import Attempt, Call, State
from execution.retries import REPEATABLE
from execution.sessions import KIND, offers

logger = logging.getLogger(__name__)

MAX_LOST = 3  # a call that cost so many workers is not tried again


def recover(call: Call) -> None:
    """Queued again, failed or unknown; nothing, if its lease was kept or it moved meanwhile."""
    idempotency = call.tool.idempotency if call.tool is not None else "non_idempotent"
    if idempotency not in REPEATABLE:
        if losses.give_up(call, _unknown(), state=State.UNKNOWN):
            logger.error("call %s of %s: its worker was lost; a person must say", call.pk, call.tool_ref)
    elif _lost(call) >= MAX_LOST:
        losses.give_up(call, _poisoned(), state=State.FAILED)
    elif losses.requeue(call):
        logger.warning("call %s of %s: its worker was lost, it is queued again", call.pk, call.tool_ref)
        if call.dispatch == KIND:
            offers.announce_call(call)
        else:
            dispatch.send(call.pk)


def _lost(call: Call) -> int:
    """How many workers the call has cost, this one included; attempts that failed by themselves cost none."""
    return Attempt.objects.filter(call=call, status="lost").count() + 1


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
