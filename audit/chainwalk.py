"""ChainWalk: every event, subject by subject, its keyed hash recomputed and its link followed."""

from typing import Any

from django.db import connection

from audit.chain import ORIGIN, known_keys, row_hash
from audit.findings import Finding
from audit.report import Report
from audit.stream import moment, raw, stream

_SQL = (
    "SELECT id, subject_kind, subject_id, seq, event, actor, {at}, outcome, detail, trace_id, prev_hash, hash, key_id "
    "FROM audit_event ORDER BY subject_kind, subject_id, seq, id"
)
# As text from the database: making a date and a text of it again would be a quarter of the whole walk.
_AT = {"sqlite": "CAST(at AS TEXT)", "postgresql": "to_char(at AT TIME ZONE 'UTC', 'YYYY-MM-DD HH24:MI:SS.US')"}


class ChainWalk:
    """The walk over all events, subject by subject."""

    def __init__(self, report: Report, sealed_to: int) -> None:
        self.report = report
        self.findings = report.findings
        self.sealed_to = sealed_to
        self.keys = known_keys()
        self.suspect: tuple[Any, ...] | None = None  # an unsealed row with a wrong hash, until its successor is seen

    def walk(self) -> None:
        """Recompute every hash and follow every link."""
        subject: tuple[str, str] | None = None
        seq, tail, last_id, was_good = 0, ORIGIN, 0, True
        keys = self.keys
        for row in stream(_SQL.format(at=_AT[connection.vendor])):
            id, kind, name, number, event, actor, at, outcome, detail, trace_id, prev_hash, own, key_name = row
            self.report.events += 1
            if (kind, name) != subject:
                self._settle(None, False)
                subject = (kind, name)
                self.report.subjects += 1
                seq, tail, last_id, was_good = 0, ORIGIN, 0, True
            prev_hash, own = raw(prev_hash), raw(own)
            key = keys.get(key_name)
            is_good = key is not None and own == row_hash(
                key, key_name, kind, name, number, event, actor, moment(at), outcome, detail, trace_id, prev_hash
            )
            if self.suspect is not None:
                self._settle(row, is_good)
            if not is_good:
                self._bad_hash(row, key)
            elif number > seq + 1:
                self._lost(row, seq + 1, last_id)
            elif number <= seq or id < last_id:
                self._found("reordered", row, "this event stands out of order in its chain")
            elif prev_hash != tail and was_good:
                self._found("reordered", row, "this event does not follow from the one before")
            seq, tail, last_id, was_good = number, own, max(id, last_id), is_good
        self._settle(None, False)

    def _bad_hash(self, row: tuple[Any, ...], key: bytes | None) -> None:
        if row[0] in self.findings.inserted:
            return  # the seals have told that already
        if key is None:
            self._found("unknown_key", row, "this event was not written under a key we know")
        elif self._fits_elsewhere(row, key):
            self._found("reordered", row, "this event was written with another sequence number")
        elif row[0] <= self.sealed_to:
            self._found("edited", row, "its keyed hash does not fit what it says")
        else:
            self.suspect = row

    def _settle(self, successor: tuple[Any, ...] | None, is_good: bool) -> None:
        """Decide about the suspect: a genuine successor proves that a genuine event stood there and was edited."""
        if self.suspect is None:
            return
        row, self.suspect = self.suspect, None
        if successor is not None and is_good and successor[3] == row[3] + 1:
            self._found("edited", row, "its keyed hash does not fit what it says")
        else:
            self._found("inserted", row, "its keyed hash is not ours, and no seal or later event vouches for it")

    def _fits_elsewhere(self, row: tuple[Any, ...], key: bytes) -> bool:
        _, kind, name, seq, event, actor, at, outcome, detail, trace_id, prev_hash, own, key_name = row
        facts = (event, actor, moment(at), outcome, detail, trace_id, raw(prev_hash))
        nearby = range(max(1, seq - 100), seq + 101) if self.findings.count < 100 else ()
        return any(row_hash(key, key_name, kind, name, other, *facts) == raw(own) for other in nearby)

    def _lost(self, row: tuple[Any, ...], seq: int, last_id: int) -> None:
        self.findings.add(
            Finding(
                reason="missing",
                table="audit_event",
                message=f"the chain goes from {seq - 1} to {row[3]}",
                subject_kind=row[1],
                subject_id=row[2],
                seq=seq,
                between=(last_id, row[0]),
            )
        )

    def _found(self, reason: str, row: tuple[Any, ...], message: str) -> None:
        self.findings.add(
            Finding(
                reason=reason,
                table="audit_event",
                message=message,
                id=row[0],
                subject_kind=row[1],
                subject_id=row[2],
                seq=row[3],
            )
        )
