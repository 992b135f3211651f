"""What an operator sees of every attempt and every answer: a line, a number, a span. Names and codes, never a value."""

from datetime import UTC, datetime

from execution.claim import Claim
from execution.errors import Failure
from execution.messages import CallOutcome, CallRequest
from execution.telemetry import later, line, metrics, spans
from execution.telemetry.facts import facts_of, status_of
from execution.telemetry.metrics import load
from registry.toolspec import ToolSpec

__all__ = ["answered", "attempted", "flush", "load", "retried"]


def attempted(claim: Claim, failure: Failure | None) -> None:
    """An attempt is over and on record."""
    later.tell(_tell_of_attempt, claim, failure, datetime.now(UTC), claim.elapsed_ms())


def answered(request: CallRequest, tool: ToolSpec | None, outcome: CallOutcome) -> None:
    """A door is about to answer; the tool is None if there was none to find."""
    failure = outcome.failure
    later.tell(metrics.answered, request.door, tool, status_of(failure), failure.code.wire if failure else "")


def retried(tool: ToolSpec, *, is_granted: bool) -> None:
    """Another attempt was wanted, and there was budget for it or not."""
    later.tell(metrics.retried, tool, is_granted)


def flush() -> None:
    """Tells what is known by now, to the last line: for a process that is about to end."""
    later.flush()
    line.flush()


def _tell_of_attempt(claim: Claim, failure: Failure | None, finished_at: datetime, duration_ms: float) -> None:
    facts = facts_of(claim, failure, finished_at, duration_ms)
    line.write(facts)
    metrics.attempted(claim.tool, facts)
    spans.record(claim, facts)
