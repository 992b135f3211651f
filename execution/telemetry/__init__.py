"""What an operator sees of every attempt and every answer: a line, a number, a span. Names and codes, never a value."""

import logging

from execution.claim import Claim
from execution.errors import Failure
from execution.messages import CallOutcome, CallRequest
from execution.telemetry import line, metrics, spans
from execution.telemetry.facts import facts_of, status_of
from execution.telemetry.metrics import load
from registry.toolspec import ToolSpec

logger = logging.getLogger(__name__)

__all__ = ["answered", "attempted", "load", "retried"]


def attempted(claim: Claim, failure: Failure | None) -> None:
    """An attempt is over and on record; whoever waits for its answer gets it, even if telling goes wrong."""
    with _told():
        facts = facts_of(claim, failure)
        line.write(facts)
        metrics.attempted(claim.tool, facts)
        spans.record(claim, facts)


def answered(request: CallRequest, tool: ToolSpec | None, outcome: CallOutcome) -> None:
    """A door is about to answer; the tool is None if there was none to find."""
    failure = outcome.failure
    with _told():
        metrics.answered(request.door, tool, status_of(failure), failure.code.wire if failure else "")


def retried(tool: ToolSpec, *, is_granted: bool) -> None:
    """Another attempt was wanted, and there was budget for it or not."""
    with _told():
        metrics.retried(tool, is_granted=is_granted)


class _told:
    """Handlers, exporters and disks are the operator's and fail in their own ways; a call never fails for that."""

    def __enter__(self) -> None: ...

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: object) -> bool:
        if not isinstance(error, Exception):
            return False
        logger.warning("something could not be told of", exc_info=error)
        return True
