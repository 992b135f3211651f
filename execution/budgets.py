"""Retry budgets: further attempts of one tool are at most a tenth of its calls and one per second, over all processes.

The bucket is in the database and is touched only when a further attempt is wanted. Calls are counted by each process
for itself and poured into the bucket then; what a process that ends had not yet poured is lost, which only makes the
budget smaller. A bucket begins with ten, and never holds more than fifty.
"""

import logging
from collections import Counter
from threading import Lock

from django.db import DatabaseError, transaction
from django.db.models.functions import Now

from execution import telemetry
from execution.models import RetryBudget
from registry.toolspec import ToolSpec

logger = logging.getLogger(__name__)

PER_CALL = 0.1
PER_SECOND = 1.0
AT_FIRST = 10.0
AT_MOST = 50.0

_calls: Counter[int] = Counter()
_lock = Lock()


def count(tool: ToolSpec) -> None:
    """A call of the tool began its first attempt here."""
    with _lock:
        _calls[tool.id] += 1


def spend(tool: ToolSpec) -> bool:
    """Whether there may be one more attempt; if so, it is paid for."""
    with _lock:
        poured = _calls.pop(tool.id, 0) * PER_CALL
    try:
        is_granted = _spent(tool, poured)
    except DatabaseError as error:  # whoever asks has a failure to record, which must not be lost over this
        logger.warning("the retry budget of %s could not be read: %s", tool.tool_id, type(error).__name__)
        is_granted = False
    telemetry.retried(tool, is_granted=is_granted)
    return is_granted


def _spent(tool: ToolSpec, poured: float) -> bool:
    with transaction.atomic():
        RetryBudget.objects.get_or_create(tool_id=tool.id, defaults={"tokens": AT_FIRST})
        budget = RetryBudget.objects.select_for_update().annotate(now=Now()).get(tool_id=tool.id)
        passed = max(0.0, (budget.now - budget.filled_at).total_seconds())
        tokens = min(AT_MOST, budget.tokens + poured + passed * PER_SECOND)
        is_granted = tokens >= 1
        tokens -= 1 if is_granted else 0
        RetryBudget.objects.filter(pk=budget.pk).update(tokens=tokens, filled_at=budget.now)
    return is_granted
