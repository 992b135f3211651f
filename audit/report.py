"""Report: what one verification counted and found."""

from dataclasses import dataclass, field

from audit.findings import Finding, Findings


@dataclass(slots=True)
class Report:
    """What a whole walk found."""

    events: int = 0
    subjects: int = 0
    seals: int = 0
    sealed: int = 0
    unsealed: int = 0
    torn_lines: int = 0
    findings: Findings = field(default_factory=Findings)

    @property
    def is_intact(self) -> bool:
        """Nothing was changed, added, removed or moved."""
        return self.findings.count == 0

    @property
    def first(self) -> Finding | None:
        """The first bad row."""
        return next(iter(self.findings.all()), None)
