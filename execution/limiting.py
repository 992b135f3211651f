"""The limits of the rule that let a call in: its row and its count are committed together, or neither."""

from collections.abc import Callable
from typing import TypeVar

from django.db import transaction

from execution.errors import CallError, ErrorCode
from execution.models import OPEN, Call, State
from policy import meters
from policy.decision import Decision
from policy.meters import Reached
from policy.question import Question

Row = TypeVar("Row")

_BUSY = [state for state in OPEN if state != State.AWAITING_APPROVAL]


def counted(question: Question, decision: Decision, open_row: Callable[[], Row | None]) -> Row | None:
    """The row that `open_row` writes; if it is one too many, CallError, and nothing was written."""
    limits = decision.limits
    if limits is None:
        return open_row()
    with transaction.atomic():
        row = open_row()
        reached = meters.count(question, limits, open_calls=lambda: _open_calls(question)) if row is not None else None
        if reached is not None:
            raise _refusal(reached, decision)
    return row


def _open_calls(question: Question) -> int:
    """Calls of this agent to this tool, in whichever version, that run or will run; not those that wait for people."""
    tool = question.tool
    same = Call.objects.filter(agent=question.caller.agent_id, tool__name=tool.name)
    return same.filter(tool__version__toolkit=tool.toolkit_id, state__in=_BUSY).count()


def _refusal(reached: Reached, decision: Decision) -> CallError:
    return CallError(
        ErrorCode.RATE_LIMITED,
        f"The limit of {reached.limit} is reached",
        developer_message=f"Rule '{decision.rule}' sets it for each agent and tool; the same call can come again",
        can_retry=True,
        retry_after_ms=round(reached.retry_after * 1000),
        details={"rule": decision.rule},
    )
