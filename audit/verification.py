"""Verification: walks every seal and every chain, and names the first row that is not as it was written."""

from contextlib import AbstractContextManager, nullcontext
from datetime import UTC, datetime, timedelta
from typing import Any

from django.db import connection, transaction

from audit.chainwalk import ChainWalk
from audit.findings import Finding
from audit.report import Report
from audit.sealwalk import SealWalk
from audit.statement import Statement
from audit.stream import moment

LATE = timedelta(minutes=5)  # an event this much older than a seal belonged into it


def verify(*, max_unsealed_age: timedelta | None = None) -> Report:
    """Check all seals against the seal file and the events, then every chain; reads in streams and writes nothing."""
    report = Report()
    # Server-side cursors of PostgreSQL live in a transaction; on SQLite one would keep every writer waiting.
    frame: AbstractContextManager[Any] = transaction.atomic() if connection.vendor == "postgresql" else nullcontext()
    with frame:
        last = SealWalk(report).walk()
        _check_unsealed(report, last, max_unsealed_age)
        ChainWalk(report, last.last_id if last else 0).walk()
    return report


def _check_unsealed(report: Report, last: Statement | None, max_age: timedelta | None) -> None:
    """Count the events after the last seal; one that a later seal left out, or that is too old, is a finding."""
    bound = last.last_id if last else 0
    with connection.cursor() as cursor:
        cursor.execute("SELECT COUNT(*), MIN(id), MIN(at) FROM audit_event WHERE id > %s", [bound])
        report.unsealed, first_id, oldest = cursor.fetchone()
    if not report.unsealed:
        return
    at = datetime.fromisoformat(moment(oldest)).replace(tzinfo=UTC)
    is_skipped = last is not None and last.sealed_at - at > LATE
    is_old = max_age is not None and datetime.now(UTC) - at > max_age
    if is_skipped or is_old:
        message = f"{report.unsealed} events are not sealed, the oldest since {at.isoformat(timespec='seconds')}"
        report.findings.add(Finding(reason="unsealed_too_old", table="audit_event", message=message, id=first_id))
