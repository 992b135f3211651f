"""Findings: what verification found wrong, the first by event id kept in front."""

from dataclasses import asdict, dataclass, field, replace
from typing import Any

_KEPT = 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One piece of evidence that is not as it was written."""

    # edited, missing, inserted, reordered, tail_cut, unknown_key, unsealed_too_old, bad_signature or seal_missing
    reason: str
    table: str  # audit_event, audit_seal or seals.jsonl
    message: str
    id: int | None = None
    subject_kind: str | None = None
    subject_id: str | None = None
    seq: int | None = None
    seal: int | None = None
    # The event ids between which it lies: its place among the others, and what joins two views of one loss.
    between: tuple[int, int] = (0, 0)

    def told(self) -> dict[str, Any]:
        """The finding for a report."""
        facts = asdict(self)
        del facts["between"]
        return {name: value for name, value in facts.items() if value is not None}

    def __str__(self) -> str:
        subject = f", {self.subject_kind} {self.subject_id} #{self.seq}" if self.subject_kind else ""
        where = f"{self.table} {self.id if self.id is not None else self.seal or ''}".strip()
        return f"{where}{subject}: {self.reason}: {self.message}"


@dataclass(slots=True)
class Findings:
    """All findings of one run, bounded in memory however much is broken."""

    count: int = 0
    _kept: list[Finding] = field(default_factory=list)
    inserted: set[int] = field(default_factory=set)

    def add(self, finding: Finding) -> None:
        """Remember a finding; beyond a thousand only the earliest ones."""
        self.count += 1
        if finding.reason == "inserted" and finding.id is not None and len(self.inserted) < 100 * _KEPT:
            self.inserted.add(finding.id)
        self._kept.append(finding)
        if len(self._kept) > 2 * _KEPT:
            self._kept = self.all()[:_KEPT]

    def all(self) -> list[Finding]:
        """The findings kept, the earliest first, one for each thing that is wrong."""
        ordered = sorted(self._kept, key=_place)
        lost = [finding for finding in ordered if finding.reason == "missing" and finding.id is None]
        joined: dict[int, Finding] = {}
        for index, finding in enumerate(ordered):
            if finding.reason not in ("missing", "tail_cut") or finding.id is None:
                continue
            # A seal knows the id of what is gone, a chain knows whose it was: where only one fits, it is the same row.
            same = [other for other in lost if other.between[0] < finding.id < other.between[1]]
            if len(same) == 1:
                own = same[0]
                lost.remove(own)
                joined[id(own)] = own
                ordered[index] = replace(finding, subject_kind=own.subject_kind, subject_id=own.subject_id, seq=own.seq)
        return [finding for finding in ordered if id(finding) not in joined]


def _place(finding: Finding) -> tuple[int, int]:
    """Events by id; what has no id stands where it was missed, after what has one."""
    if finding.id is not None:
        return finding.id, 0
    return finding.between[1], 1
