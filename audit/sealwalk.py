"""SealWalk: every seal of table and file in step, and the events under each."""

import time
from collections.abc import Iterator

from audit.findings import Finding
from audit.merkle import Merkle
from audit.models import Seal
from audit.report import Report
from audit.sealfile import SealFile
from audit.sealing import statement_of
from audit.statement import ORIGIN, Statement
from audit.stream import raw, stream


class SealWalk:
    """The walk over seals, and over the events in the order of their ids."""

    def __init__(self, report: Report) -> None:
        self.report = report
        self.findings = report.findings
        self.file = SealFile()
        newest, size = self._both_ends()
        self.rows = (statement_of(row) for row in Seal.objects.filter(n__lte=newest).order_by("n").iterator(2000))
        self.lines = self._whole_lines(size)
        self.events = stream("SELECT id, hash FROM audit_event ORDER BY id")
        self.event = next(self.events, None)

    def _both_ends(self) -> tuple[int, int]:
        """Where table and file end at one moment, while no sealer is between the two."""
        deadline = time.monotonic() + 5
        while True:
            with self.file.held() as is_ours:
                if is_ours or time.monotonic() > deadline:
                    newest = Seal.objects.order_by("-n").values_list("n", flat=True).first()
                    return newest or 0, self.file.size()
            time.sleep(0.01)

    def _whole_lines(self, size: int) -> Iterator[Statement]:
        for line in self.file.lines(size):
            if line is None:
                self.report.torn_lines += 1
            else:
                yield line

    def walk(self) -> Statement | None:
        """Go through all seals in step; the last good one is returned."""
        last: Statement | None = None
        row, line = next(self.rows, None), next(self.lines, None)
        while row is not None or line is not None:
            expected = last.n + 1 if last else 1
            if line is not None and line.n < expected:
                self._bad("seals.jsonl", line, "inserted", "the file has this number a second time or out of order")
                line = next(self.lines, None)
                continue
            n = min(seal.n for seal in (row, line) if seal is not None)
            own_row = row if row is not None and row.n == n else None
            own_line = line if line is not None and line.n == n else None
            last = self._check(last, own_row, own_line, expected)
            row = next(self.rows, None) if own_row is not None else row
            line = next(self.lines, None) if own_line is not None else line
        return last

    def _check(self, last: Statement | None, row: Statement | None, line: Statement | None, expected: int) -> Statement:
        """Check one number in table and file, then the events under it; the statement to go on from is returned."""
        candidates = [(table, seal) for table, seal in (("audit_seal", row), ("seals.jsonl", line)) if seal is not None]
        seal = candidates[-1][1]
        if seal.n > expected:
            self._bad("audit_seal", seal, "seal_missing", f"seal {expected} is in neither table nor file", n=expected)
            self._skip_events(seal.first_id - 1)  # nobody can say any more which of these there were
        if row is None:
            self._bad("audit_seal", seal, "seal_missing", "the file has this seal, the table does not")
        if line is None:
            self._bad("seals.jsonl", seal, "seal_missing", "the table has this seal, the file does not")
        good = []
        for table, candidate in candidates:
            if candidate.is_signed():
                good.append(candidate)
            else:
                self._bad(table, candidate, "bad_signature", "the signature does not fit what the seal says")
        if not good:
            self._skip_events(seal.last_id)
            return seal
        if len(good) == 2 and good[0] != good[1]:
            self._bad("audit_seal", good[0], "edited", "table and file hold two different signed seals of this number")
        seal = good[-1]
        is_next = seal.n == expected
        if is_next and seal.prev_seal_hash != (last.hash if last else ORIGIN) and (last is None or last.is_signed()):
            self._bad("audit_seal", seal, "reordered", "this seal does not follow from the one before")
        elif is_next and seal.first_id != (last.last_id + 1 if last else 1):
            self._bad("audit_seal", seal, "reordered", "this seal does not begin where the one before ended")
        self.report.seals += 1
        self._check_events(seal)
        return seal

    def _check_events(self, seal: Statement) -> None:
        """Hold the events of one seal against it: the same ids, the same hashes, the same order."""
        tree = Merkle()
        before = self.findings.count
        while self.event is not None and self.event[0] < seal.first_id:
            self._inserted(seal)
        for wanted in _present(seal):
            while self.event is not None and self.event[0] < wanted:
                self._inserted(seal)
            if self.event is not None and self.event[0] == wanted:
                tree.add(wanted, raw(self.event[1]))
                self.event = next(self.events, None)
                continue
            reason = "tail_cut" if self.event is None else "missing"
            message = f"seal {seal.n} covers an event with this id, and it is gone"
            self.findings.add(Finding(reason=reason, table="audit_event", message=message, id=wanted, seal=seal.n))
        while self.event is not None and self.event[0] <= seal.last_id:
            self._inserted(seal)
        self.report.sealed += tree.count
        if self.findings.count == before and tree.root() != seal.merkle_root:
            message = f"the hashes of events {seal.first_id} to {seal.last_id} are not those that were sealed"
            between = (seal.first_id - 1, seal.last_id)
            self.findings.add(
                Finding(reason="edited", table="audit_event", message=message, seal=seal.n, between=between)
            )

    def _inserted(self, seal: Statement) -> None:
        assert self.event is not None
        message = f"no event had this id when seal {seal.n} was made"
        self.findings.add(
            Finding(reason="inserted", table="audit_event", message=message, id=self.event[0], seal=seal.n)
        )
        self.event = next(self.events, None)

    def _skip_events(self, last_id: int) -> None:
        while self.event is not None and self.event[0] <= last_id:
            self.event = next(self.events, None)

    def _bad(self, table: str, seal: Statement, reason: str, message: str, n: int | None = None) -> None:
        between = (seal.first_id - 1, seal.last_id)
        self.findings.add(Finding(reason=reason, table=table, message=message, seal=n or seal.n, between=between))


def _present(seal: Statement) -> Iterator[int]:
    """The ids that events had when the seal was made."""
    start = seal.first_id
    for first, last in seal.absent():
        yield from range(start, first)
        start = last + 1
    yield from range(start, seal.last_id + 1)
