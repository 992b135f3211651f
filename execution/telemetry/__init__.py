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

__all__ = ["answered", "attempted", "load"]


def attempted(claim: Claim, failure: Failure | None) -> None:
    """An attempt is over and on record; whoever waits for its answer gets it, even if telling goes wrong."""
    try:
        facts = facts_of(claim, failure)
        line.write(facts)
        metrics.attempted(claim.tool, facts)
        spans.record(claim, facts)
    except Exception:  # handlers and exporters are the operator's, and fail in their own ways
        logger.warning("attempt %s of call %s could not be told of", claim.fence, claim.id, exc_info=True)


def answered(request: CallRequest, tool: ToolSpec | None, outcome: CallOutcome) -> None:
    """A door is about to answer; the tool is None if there was none to find."""
    failure = outcome.failure
    metrics.answered(request.door, tool, status_of(failure), failure.code.wire if failure else "")
